// Package kv is the KV cache: it decides which request owns which block, in which tier, and
// which blocks move.
//
// Budget (budget.go) admits a request by tokens, as vLLM's block manager does, against HBM
// without offloading and against DRAM with it. With offloading the request's blocks are in a
// Cache (cache.go). Prefill writes blocks (prefill.go). Each decode step's selection touches
// blocks group by group (access.go). Missing blocks get slots layer by layer (fill.go) from
// pools (pool.go), which evict in one of several orders (evict.go and a file per order). Free
// releases all blocks. If every head is simulated, the accesses to a layer can run in
// concurrent parts (layer.go), and many blocks can be placed at once (exchange.go). Heads may
// be a hashed sample (sample.go) with pools scaled by the same rate. needs.go answers the
// scheduler's questions; check.go states the invariants. Selections can be recorded and
// replayed without time (trace.go), and bounded by Belady's optimum (optimum.go).
//
// The package does not model time, cost or schedules. It is not safe for concurrent use.
package kv
