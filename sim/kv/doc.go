// Package kv is the KV cache: who owns which block, in which tier, and what has to move.
//
// Follow one request: Budget (budget.go) admits it by tokens, as vLLM's block manager does,
// against HBM without offloading and against DRAM with it. With offloading its blocks live in a
// Cache (cache.go): prefill writes them (prefill.go), each decode step's selection touches them
// group by group (access.go), what is missing gets slots layer by layer (fill.go), which Pools
// (pool.go) hand out and evict in one of several orders (evict.go; a file each), and Free
// returns everything. Where a GPU waits a layer's groups are accessed (layer.go) and its blocks
// exchanged (exchange.go) on several cores (parallel.go). Heads may be a hashed sample
// (sample.go) with pools scaled alike. needs.go answers what a batch would take; check.go
// states the invariants. What decodes select can be recorded and replayed without time
// (trace.go), and bounded by Belady's optimum (optimum.go).
//
// Nothing here knows time, prices or schedules. Not safe for concurrent use.
package kv
