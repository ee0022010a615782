// Package sched decides which requests run in the next iteration and how much of each prefill.
//
// request.go is a request as its scheduler sees it; planner.go splits prefills into segments
// (plain, chunked, layer-segmented, both); scheduler.go has the queues; vllm.go, vllm_v1.go and
// sarathi.go are the base policies that fill a batch; control.go is SparseServe's Algorithm 1,
// which limits a batch to what HBM can hold. A scheduler owns its queues and memory grants and
// nothing else: it sees no time, moves no block and records no metric.
package sched
