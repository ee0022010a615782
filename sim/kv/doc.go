// Package kv is the KV cache: who owns which block, in which tier, and what has to move.
//
// Follow one request: Budget (budget.go) admits it by tokens, as vLLM's block manager does,
// against HBM without offloading and DRAM with it. With offloading its blocks are in a Cache
// (cache.go): prefill writes them (prefill.go), each decode step's selection touches them group
// by group (access.go), missing blocks get slots layer by layer (fill.go) from Pools (pool.go),
// which evict in one of several orders (evict.go; a file each), and Free returns everything.
// When every head is simulated, a layer's accesses can be made in parts at the same time
// (layer.go), and many blocks placed at once (exchange.go). Heads may be a hashed sample
// (sample.go) with pools scaled alike. needs.go answers a scheduler's questions; check.go
// states the invariants. Selections can be recorded and replayed without time (trace.go), and
// bounded by Belady's optimum (optimum.go).
//
// Nothing here knows time, prices or schedules. Not safe for concurrent use.
package kv
