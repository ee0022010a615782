// Package records reads recordings by clients of real servers: requests with their latencies.
//
// read.go opens a file and detects its format. csv.go and a file for each tool read one format;
// aggregates.go reads results without requests, and untimed.go makes times that a record lacks.
// sent.go checks and sorts the requests. identity.go finds shared prompts.
package records
