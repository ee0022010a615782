// Package sched decides which requests run in the next iteration and how much of each prefill.
//
// request.go is the scheduler's view of a request. planner.go splits prefills into segments
// (plain, chunked, layer-segmented, both). scheduler.go has the queues. vllm.go, vllm_v1.go,
// sglang.go and sarathi.go are the base policies that fill a batch. control.go is SparseServe's
// Algorithm 1, which limits a batch to the capacity of HBM. A scheduler owns only its queues and
// memory grants: it does not see time, move blocks or record metrics.
package sched
