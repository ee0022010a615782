package kv

import (
	"fmt"
	"strings"
)

// ref names a block whose last use was at its request's step stamp.
type ref struct {
	seq   int32
	stamp uint32
	group uint16 // index in the sample
	block uint16
}

// evictor is one eviction order over the blocks of a pool. It does not see hits: a block's mark
// has its last use.
type evictor interface {
	// entered receives a block that got a slot.
	entered(*Cache, ref)
	// victim returns the next block to evict, or false when none is idle. A layer that is not
	// nil is the only one with idle blocks.
	victim(c *Cache, only *Layer) (ref, bool)
	// tidy drops stale refs, between steps, of a pool of that size.
	tidy(c *Cache, slots int)
}

// Eviction is an eviction order that a Config can name.
type Eviction struct {
	Name, About string
	make        func(pool int, score Score) evictor
}

// Evictions lists the eviction orders, the usual one first.
func Evictions() []Eviction {
	return []Eviction{
		{LRU, "the least recently used block", func(pool int, _ Score) evictor { return newLRU(pool) }},
		{FIFO, "the block that entered first", func(pool int, _ Score) evictor {
			return &clock{pool: pool, fifo: true}
		}},
		{CLOCK, "the block that entered first, but each use since the hand last passed keeps it for " +
			"another round", func(pool int, _ Score) evictor { return &clock{pool: pool} }},
		{SIEVE, "as clock, but what is kept keeps its place and the hand goes on to younger blocks " +
			"(NSDI'24)", func(pool int, _ Score) evictor { return &sieve{pool: pool} }},
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

// EvictionNames names the eviction orders, the usual one first.
func EvictionNames() []string {
	var names []string
	for _, e := range Evictions() {
		names = append(names, e.Name)
	}
	return names
}

// evictionNamed returns the eviction order that a configuration asks for.
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

// stays says whether the block of a ref has been in HBM since the ref was made. A block's ref
// goes when it is evicted, but its request may have been freed and the handle reused.
func (c *Cache) stays(r ref) bool {
	m := c.at(r)
	return m != nil && m.resident() && c.seqs[r.seq].born <= r.stamp
}

// used returns the request's step at which a block was last selected.
func (c *Cache) used(r ref) uint32 {
	m := *c.at(r)
	if m&active != 0 {
		return c.seqs[r.seq].groups[r.group].last
	}
	return m.when()
}

// pass says whether the hand can evict a block that stays, and otherwise forgets its uses until
// now: selections after the step in which it entered or the hand last passed. Blocks that are
// not idle are never evicted.
func (c *Cache) pass(r *ref) (evict bool) {
	if used := c.used(*r); used > r.stamp {
		r.stamp = used
		return false
	}
	return c.at(*r).idle()
}
