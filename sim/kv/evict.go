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

// evictor is one eviction order over the blocks of a pool. Hits are not reported to it: a
// block's mark tells when it was used last.
type evictor interface {
	// entered is told of a block that got a slot.
	entered(*Cache, ref)
	// victim returns the next block to evict, or false when none is idle. A layer that is not
	// nil is the only one with idle blocks.
	victim(c *Cache, only *Layer) (ref, bool)
	// tidy is called between steps, to drop stale refs of a pool of that size.
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
		{LRU, "the block whose last use lies furthest back", func(pool int, _ Score) evictor { return newLRU(pool) }},
		{FIFO, "the block that entered first", func(int, Score) evictor { return &fifo{} }},
		{CLOCK, "the block that entered first, but each use since the hand last passed keeps it for another round", func(pool int, _ Score) evictor { return &clock{pool: pool} }},
		{SIEVE, "as clock, but what is kept keeps its place and the hand goes on to younger blocks (NSDI'24)", func(pool int, _ Score) evictor { return &sieve{pool: pool} }},
		{ByScore, "the block of the lowest score: the farthest from being selected at its request's newest step (ArkVale)", func(pool int, score Score) evictor { return &byScore{pool: pool, score: score} }},
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
	return nil, fmt.Errorf("kv: no eviction policy %q; known: %s", cfg.Eviction, strings.Join(EvictionNames(), ", "))
}

// stays says whether the block of a ref has been in HBM ever since the ref was made. It enters
// anew only after it was evicted, and its ref went with it; but the request may have gone, and
// another may have its handle.
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

// pass is what a hand does at a block that stays: it says whether the block can go, and
// otherwise forgets the block's visits until now. A visit is a selection after the step in
// which the block entered or the hand last passed. Blocks that are not idle never go.
func (c *Cache) pass(r *ref) (evict bool) {
	if used := c.used(*r); used > r.stamp {
		r.stamp = used
		return false
	}
	return c.at(*r).idle()
}
