package kv

import (
	"fmt"
	"strings"
)

// ref names a block last used at step stamp of its request.
type ref struct {
	seq   int32
	stamp uint32
	group uint16 // index in the sample
	block uint16
}

// evictor is one eviction order over the blocks of a pool. It is not notified of hits; a
// block's mark holds its last use.
type evictor interface {
	// entered is called for each block that gets a slot.
	entered(*Cache, ref)
	// victim returns the next block to evict, or false if no block is idle. If only is not nil,
	// no other layer has idle blocks.
	victim(c *Cache, only *Layer) (ref, bool)
	// tidy drops stale refs between steps; slots is the size of the pool.
	tidy(c *Cache, slots int)
}

// Eviction is an eviction order that a Config can name.
type Eviction struct {
	Name, About string
	make        func(pool int, score Score) evictor
}

// Evictions lists the eviction orders, the default first.
func Evictions() []Eviction {
	return []Eviction{
		{LRU, "the least recently used block", func(pool int, _ Score) evictor { return newLRU(pool) }},
		{FIFO, "the block that entered first", func(pool int, _ Score) evictor {
			return &hand{pool: pool, fifo: true}
		}},
		{CLOCK, "the block that entered first, but each use since the hand last passed keeps it for " +
			"another round", func(pool int, _ Score) evictor { return &hand{pool: pool} }},
		{SIEVE, "as clock, but what is kept keeps its place and the hand goes on to younger blocks " +
			"(NSDI'24)", func(pool int, _ Score) evictor { return &hand{pool: pool, stay: true} }},
		{ByScore, "the block of the lowest score: the farthest from being selected at its request's " +
			"newest step (ArkVale)", func(pool int, score Score) evictor {
			return &byScore{pool: pool, score: score}
		}},
	}
}

// Names of eviction orders.
const (
	LRU     = "lru"
	FIFO    = "fifo"
	CLOCK   = "clock"
	SIEVE   = "sieve"
	ByScore = "score"
)

// EvictionNames names the eviction orders, the default first.
func EvictionNames() []string {
	var names []string
	for _, e := range Evictions() {
		names = append(names, e.Name)
	}
	return names
}

// evictionNamed returns the configured eviction order.
func evictionNamed(cfg *Config) (*Eviction, error) {
	for _, e := range Evictions() {
		if e.Name != cfg.Eviction {
			continue
		}
		if e.Name == ByScore && cfg.Score == nil {
			return nil, fmt.Errorf("kv: eviction by %q needs the blocks' scores", ByScore)
		}
		return &e, nil
	}
	return nil, fmt.Errorf("kv: no eviction policy %q; known: %s", cfg.Eviction,
		strings.Join(EvictionNames(), ", "))
}

// stays reports whether the block of a ref has been in HBM since the ref was made. Eviction
// removes a block's ref, but the request may have been freed and its handle reused.
func (c *requests) stays(r ref) bool {
	m := c.at(r)
	return m != nil && m.resident() && c.seqs[r.seq].born <= r.stamp
}

// used returns the request's step at which a block was last selected.
func (c *requests) used(r ref) uint32 {
	m := *c.at(r)
	if m&active != 0 {
		return c.seqs[r.seq].groups[r.group].last
	}
	return m.when()
}

// pass reports whether the hand can evict a block for which stays is true. If the block was
// used after its stamp, pass advances the stamp and returns false. The stamp is the step in
// which the block entered or was last passed. Blocks that are not idle are never evicted.
func (c *requests) pass(r *ref) (evict bool) {
	if used := c.used(*r); used > r.stamp {
		r.stamp = used
		return false
	}
	return c.at(*r).idle()
}
