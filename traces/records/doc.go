// Package records reads what clients of real servers recorded: requests with their latencies.
//
// read.go opens a file and recognises its format; vllm.go, inferenceperf.go, guidellm.go and csv.go
// are a format each; sent.go checks and orders the requests; identity.go reads what prompts of a
// CSV have in common.
package records
