// Package records reads recordings by clients of real servers: requests with their latencies.
//
// read.go opens a file and detects its format. tools.go reads the tools whose records are requests,
// a file each the others; aggregates.go reads results without requests, and untimed.go makes times
// that a record lacks. identity.go finds shared prompts.
package records
