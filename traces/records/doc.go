// Package records reads recordings by clients of real servers: requests with their latencies.
//
// read.go opens a file and detects its format. vllm.go, inferenceperf.go, guidellm.go and csv.go
// each read one format. sent.go checks and sorts the requests. identity.go finds shared prompts.
package records
