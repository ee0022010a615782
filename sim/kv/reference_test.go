package kv

import (
	"slices"

	"pgregory.net/rapid"
)

// reference is the naive cache: maps and scans, one entry a resident block.
// Recency is (step, layer): what one layer of one step reads is used at once.
type reference struct {
	slots, window int
	used          map[[3]int][2]int // {seq, group, block} -> {step, layer} of last use
	history       map[int][]map[[2]int]bool
}

func (n *reference) workingSet(seq int) int {
	union := map[[2]int]bool{}
	h := n.history[seq]
	for _, set := range h[max(0, len(h)-n.window):] {
		for k := range set {
			union[k] = true
		}
	}
	return len(union)
}

type script struct {
	t      *rapid.T
	c      *Cache
	ref    *reference
	seqs   map[int]*Seq
	tokens map[int]int
	prev   map[int][][]uint16 // last selection of each group, to offer aligned turns
	step   int
	next   int
	naive  []naive // by pool, told of hits; nil under LRU, which ref checks

	mirror         mirror // hears of changes in place of these two; nil: no listener
	before, during int    // evictions that it heard of: before a Fill, and in it
	spare          int64  // bytes that may be reserved while it listens
}

// newScript returns a script over an empty cache of a small random model.
func newScript(t *rapid.T, cfg Config) *script {
	geo := small(rapid.IntRange(1, 3).Draw(t, "layers"), rapid.IntRange(1, 2).Draw(t, "heads"))
	least := 18 // more than three requests select
	if geo.Layers > 1 && !cfg.PerLayer && cfg.Eviction != LRU {
		least = 10 // some layers' blocks are evicted for other layers'
	}
	slots := geo.Groups() * rapid.IntRange(least, 30).Draw(t, "slots a group")
	cfg.Geometry, cfg.Sample, cfg.HBMBytes = geo, FullSample(geo), int64(slots)*geo.BlockBytes
	cfg.Window = rapid.IntRange(1, 5).Draw(t, "window")
	c, err := NewCache(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &script{t: t, c: c, seqs: map[int]*Seq{}, tokens: map[int]int{}, prev: map[int][][]uint16{},
		spare: int64(slots-least*geo.Groups()) * geo.BlockBytes,
		ref: &reference{slots: slots, window: cfg.Window, used: map[[3]int][2]int{},
			history: map[int][]map[[2]int]bool{}}}
}

// run opens, decodes and frees requests at random.
func (x *script) run() {
	t := x.t
	for range rapid.IntRange(20, 60).Draw(t, "ops") {
		ids := []int{}
		for id := range x.seqs {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		switch op := rapid.IntRange(0, 5).Draw(t, "op"); {
		case op == 0 && len(ids) < 3 || len(ids) == 0:
			x.open(x.c.Geo)
		case op == 1 && len(ids) > 0:
			id := ids[rapid.IntRange(0, len(ids)-1).Draw(t, "free")]
			x.free(id)
		case op == 2 && x.mirror != nil:
			x.reserve(x.seqs[ids[rapid.IntRange(0, len(ids)-1).Draw(t, "reserves")]])
		default:
			var batch []int
			for _, id := range ids {
				if rapid.Bool().Draw(t, "in") {
					batch = append(batch, id)
				}
			}
			x.decode(batch)
		}
		if err := x.c.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// pick draws a selection of candidates and offers it as a change of the last.
func (x *script) pick(id, g, candidates, k int, sel *Selection) {
	perm := rapid.Permutation(seq(candidates)).Draw(x.t, "sel")
	next := perm[:min(k, candidates)]
	// Half of the old selection stays, at its positions or at others; the sizes differ.
	old := x.prev[id][g]
	merged := slices.Clone(next)
	for i, b := range old {
		if i%2 == 0 && i < len(merged) && !slices.Contains(merged, b) {
			merged[i] = b
		}
	}
	merged = merged[:rapid.IntRange(1, len(merged)).Draw(x.t, "size")]
	*sel = Selection{Sinks: sel.Sinks, Tail: sel.Tail, Picks: Picks{Next: merged,
		Used: rapid.IntRange(0, len(merged)).Draw(x.t, "used")}}
	if old != nil {
		sel.Follows = true
		sel.Added, sel.Came, sel.Dropped = differ(old, merged)
	}
	x.prev[id][g] = merged
}

// differ returns the positions in next that are not in prev, what is there, and what of prev is
// not in next.
func differ(prev, next []uint16) (added, came, dropped []uint16) {
	for i, b := range next {
		if !slices.Contains(prev, b) {
			added, came = append(added, uint16(i)), append(came, b)
		}
	}
	for _, b := range prev {
		if !slices.Contains(next, b) {
			dropped = append(dropped, b)
		}
	}
	return added, came, dropped
}

func seq(n int) []uint16 {
	s := make([]uint16, n)
	for i := range s {
		s[i] = uint16(i)
	}
	return s
}

// decode runs one step over some of the requests and compares every hit, miss
// and victim with the reference.
func (x *script) decode(ids []int) {
	c, t := x.c, x.t
	x.step++
	var batch []*Seq
	for _, id := range ids {
		x.tokens[id]++
		c.Extend(x.seqs[id], x.tokens[id])
		batch = append(batch, x.seqs[id])
		x.ref.history[id] = append(x.ref.history[id], map[[2]int]bool{})
	}
	c.BeginStep(batch)
	for _, l := range c.layers {
		before := x.residents()
		wantMiss, use := 0, map[[3]int]bool{}
		var sels []Selection // by request and group
		for _, id := range ids {
			s := x.seqs[id]
			for g := l.From; g < l.To; g++ {
				sel := Selection{Sinks: 1, Tail: s.blocks - 1}
				candidates := s.blocks - 2
				if candidates <= 3 {
					sel.All = true
					x.prev[id][g] = nil
				} else {
					x.pick(id, g, candidates, 3, &sel)
				}
				for b := range s.blocks {
					if sel.All || b < sel.Sinks || b >= sel.Tail ||
						slices.Contains(sel.Next, uint16(b-sel.Sinks)) {
						key := [3]int{id, g, b}
						use[key] = true
						h := x.ref.history[id]
						h[len(h)-1][[2]int{g, b}] = true
						switch {
						case before[key]:
							x.hit(key, g)
						case b < int(s.groups[g].blocks):
							wantMiss++
						}
					}
				}
				sels = append(sels, sel)
			}
		}
		x.access(l, batch, sels)
		loads, err := c.Fill(l)
		if err != nil {
			t.Fatal(err)
		}
		x.hear()
		if int(loads) != wantMiss {
			t.Fatalf("step %d layer %d: %d loads, reference misses %d", x.step, l.index, loads, wantMiss)
		}
		after := x.residents()
		// Each victim must be among the least recently used of what could go.
		newest := [2]int{-1, -1}
		for key := range before {
			if _, in := after[key]; !in {
				if use[key] {
					t.Fatalf("evicted %v, which this layer uses", key)
				}
				newest = later(newest, x.ref.used[key])
			}
		}
		for key := range after {
			u, known := x.ref.used[key]
			if x.naive == nil && x.mirror == nil && known && !use[key] && !x.held(key) && before[key] &&
				earlier(u, newest) {
				t.Fatalf("step %d layer %d: kept %v last used %v, evicted one used %v", x.step, l.index,
					key, u, newest)
			}
		}
		for key := range use {
			if !after[key] {
				t.Fatalf("%v is used but not resident", key)
			}
			x.ref.used[key] = [2]int{x.step, l.index}
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		s := x.seqs[id]
		if got, want := c.WorkingSet(s)/c.Geo.BlockBytes, int64(x.ref.workingSet(id)); got != want {
			t.Fatalf("working set of %d is %d blocks, want %d", id, got, want)
		}
		c.Saved(s, s.full)
	}
}

func earlier(a, b [2]int) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }
func later(a, b [2]int) [2]int {
	if earlier(a, b) {
		return b
	}
	return a
}

func (x *script) held(key [3]int) bool {
	s := x.seqs[key[0]]
	return s.row(key[1])[key[2]]&held != 0
}

func (x *script) residents() map[[3]int]bool {
	m := map[[3]int]bool{}
	for id, s := range x.seqs {
		for g := range s.groups {
			for b := range s.blocks {
				if s.row(g)[b].resident() {
					m[[3]int{id, g, b}] = true
				}
			}
		}
	}
	return m
}
