// Package sched decides which requests run in the next iteration and how much of each prefill.
//
// request.go is what a scheduler knows of a request; planner.go cuts prefills into segments
// (plain, chunked, layer-segmented, both); scheduler.go holds the queues; vllm.go, vllm_v1.go
// and sarathi.go are the base policies that fill a batch; control.go is SparseServe's Algorithm
// 1, which thins a batch to what HBM can hold. A scheduler owns its queues and its memory
// grants and nothing else: it sees no clock, moves no block and records no metric.
package sched
