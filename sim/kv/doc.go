// Package kv is the KV cache: it decides which request owns which block, in which tier, and
// which blocks move.
//
// A request's blocks are in a Cache (cache.go) over DRAM. Prefill writes blocks (prefill.go). Each
// decode step's selection touches blocks group by group (access.go; history.go and follow.go defer
// and batch changes). Missing blocks get slots layer by layer (fill.go) from pools (pool.go), which
// evict in one of several orders (evict.go, lru.go, hand.go, score.go). Blocks of equal content are
// shared (share.go). Free releases all blocks. Heads may be a hashed sample (sample.go) with pools
// scaled by the same rate. needs.go answers the scheduler's questions; check.go states the
// invariants. Selections can be recorded and replayed without time (trace.go), and bounded by
// Belady's optimum (optimum.go).
//
// The package does not model time, cost or schedules. It is not safe for concurrent use.
package kv
