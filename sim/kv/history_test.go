package kv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// told is a history as a list.
type told struct {
	span  int
	nexts [][]uint16
}

func (h *told) Span() int { return h.span }

func (h *told) Turn(t int) (came, dropped []uint16) {
	_, came, dropped = differ(h.nexts[t-1], h.nexts[t])
	return came, dropped
}

// last returns the newest selection, as a change of the one before where there is one, by
// definition.
func (h *told) last(sel *Selection) {
	t := len(h.nexts) - 1
	sel.Next, sel.Used, sel.History, sel.Turn = h.nexts[t], len(h.nexts[t]), h, t
	sel.Again = new([3]uint64)
	if sel.Follows = t > 0; !sel.Follows {
		return
	}
	sel.Added, sel.Came, sel.Dropped = differ(h.nexts[t-1], h.nexts[t])
	for _, b := range sel.Came {
		gap := 2
		for gap <= Lookback && (gap > t || !slices.Contains(h.nexts[t-gap], b)) {
			gap++
		}
		if gap > Lookback {
			sel.Old = append(sel.Old, b)
		} else {
			sel.Again[(gap-2)/4] += 1 << ((gap - 2) % 4 * 16)
		}
	}
}

// next adds a selection that has some of the last, some that were selected before, and others.
func (h *told) next(t *rapid.T) {
	size := min(h.span, rapid.IntRange(2, 5).Draw(t, "size"))
	var next []uint16
	for len(next) < size {
		b := uint16(rapid.IntRange(0, h.span-1).Draw(t, "candidate"))
		if rapid.Bool().Draw(t, "of the newest") {
			b = uint16(h.span-1) - b
		}
		if back := rapid.IntRange(0, 30).Draw(t, "back"); back < len(h.nexts) {
			old := h.nexts[len(h.nexts)-1-back]
			b = old[int(b)%len(old)]
		}
		for slices.Contains(next, b) {
			b = (b + 1) % uint16(h.span)
		}
		next = append(next, b)
	}
	h.nexts = append(h.nexts, next)
}

// twins are two caches of which one has its marks wait.
type twins struct {
	*rapid.T
	caches [2]*Cache
	live   []*twin
	pinned *twin // or nil
	window int   // blocks
	calm   int   // steps between two of what ends a wait, about
	lag    int   // blocks that wait to be saved, at most
	full   bool  // HBM, of blocks in use: both have failed
	rand   *rand.Rand
}

// rare reports whether an event happens that ends a wait. rapid alone would draw it too often.
func (x *twins) rare() bool { return x.rand.IntN(x.calm) == 0 }

type twin struct {
	seqs   [2]*Seq
	tokens int
	told   []*told // by group
	most   int     // tokens
}

func (x *twins) each(f func(i int, c *Cache) error) {
	a, b := f(0, x.caches[0]), f(1, x.caches[1])
	if (a == nil) != (b == nil) {
		x.Fatalf("%v, where marks wait %v", a, b)
	}
	x.full = x.full || a != nil
}

// open begins a request, which may share its first blocks with others.
func (x *twins) open() {
	w := &twin{tokens: rapid.IntRange(30, 200).Draw(x.T, "prompt")}
	w.most = w.tokens + rapid.IntRange(40, 120).Draw(x.T, "output")
	hit, keys := 0, []uint64(nil)
	if rapid.IntRange(0, 1).Draw(x.T, "shares") == 0 {
		hit = (w.tokens-1)/4 - rapid.IntRange(0, 5).Draw(x.T, "hit")
		for b := range hit {
			keys = append(keys, keyOf(0, b))
		}
	}
	chunked := w.tokens < 50 && rapid.Bool().Draw(x.T, "chunked")
	x.each(func(i int, c *Cache) (err error) {
		s := c.Open(w.most)
		w.seqs[i], w.told = s, make([]*told, len(s.groups))
		if hit > 0 {
			c.Adopt(s, hit, keys)
		}
		c.Extend(s, w.tokens)
		if !chunked {
			return c.Segmented(s)
		}
		c.BeginStep(nil)
		s.Pin(0)
		for _, l := range c.layers {
			c.Write(l, s)
			if _, err := c.Fill(l); err != nil {
				return err
			}
		}
		c.Saved(s, s.full)
		c.Unpin(s)
		return nil
	})
	x.live = append(x.live, w)
}

// pin has a request hold its newest blocks for some steps, as a prefill that goes on would.
func (x *twins) pin() {
	if w := x.pinned; w != nil {
		if rapid.IntRange(0, 2).Draw(x.T, "unpin") == 0 {
			x.pinned = nil
			x.each(func(i int, c *Cache) error { c.Unpin(w.seqs[i]); return nil })
		}
		return
	}
	if !x.rare() {
		return
	}
	w := rapid.SampledFrom(x.live).Draw(x.T, "pinned")
	x.pinned = w
	x.each(func(i int, c *Cache) error { w.seqs[i].Pin(max(0, w.seqs[i].blocks-8)); return nil })
}

// name gives blocks of a request keys, so that later requests share them.
func (x *twins) name(w *twin) {
	keys := make([]uint64, rapid.IntRange(5, 30).Draw(x.T, "named"))
	for b := range keys {
		keys[b] = keyOf(0, b)
	}
	x.each(func(i int, c *Cache) error { c.Name(w.seqs[i], keys); return nil })
}

// decode runs a step of some of the requests.
func (x *twins) decode(batch []*twin) {
	x.pin()
	x.each(func(i int, c *Cache) error {
		var seqs []*Seq
		for _, w := range batch {
			c.Extend(w.seqs[i], w.tokens+1)
			seqs = append(seqs, w.seqs[i])
		}
		c.BeginStep(seqs)
		return nil
	})
	var loads [2][]int64
	for _, l := range x.caches[0].layers {
		x.each(func(i int, c *Cache) error {
			if x.pinned != nil {
				c.Write(c.layers[l.index], x.pinned.seqs[i])
			}
			return nil
		})
		for _, w := range batch {
			for g := l.From; g < l.To; g++ {
				sel := x.choose(w, g)
				x.caches[1].Access(w.seqs[1], g, &sel)
				sel.History, sel.Again, sel.Old = nil, nil, nil
				x.caches[0].Access(w.seqs[0], g, &sel)
			}
		}
		x.each(func(i int, c *Cache) error {
			n, err := c.Fill(c.layers[l.index])
			loads[i] = append(loads[i], n)
			return err
		})
	}
	if !slices.Equal(loads[0], loads[1]) {
		x.Fatalf("%v blocks loaded, %v where marks wait", loads[0], loads[1])
	}
	for _, w := range batch {
		w.tokens++
		lag := w.seqs[0].full - w.seqs[0].saved
		if lag > x.lag {
			x.each(func(i int, c *Cache) error { c.Saved(w.seqs[i], w.seqs[i].full); return nil })
		}
	}
}

// choose draws what a group selects.
func (x *twins) choose(w *twin, g int) Selection {
	s := w.seqs[0]
	if s.blocks < 15 && x.rare() {
		w.told[g] = nil
		return Selection{All: true}
	}
	sel := Selection{Sinks: 1, Tail: s.blocks - x.window}
	h := w.told[g]
	if h == nil || x.rare() {
		h = &told{span: sel.Tail - 1 - x.rand.IntN(3)}
		w.told[g] = h
	}
	h.next(x.T)
	h.last(&sel)
	sel.Used -= rapid.IntRange(0, 1).Draw(x.T, "unused")
	if x.rare() {
		sel.History = nil
	}
	return sel
}

// compare finds both caches to have the same, by what they say and block by block.
func (x *twins) compare() {
	a, b := x.caches[0], x.caches[1]
	if a.stats != b.stats {
		x.Fatalf("%+v, where marks wait %+v", a.stats, b.stats)
	}
	for i := range a.pools {
		if p, q := &a.pools[i], &b.pools[i]; p.used != q.used || p.idle != q.idle {
			x.Fatalf("pool %d: %d used, %d idle, where marks wait %d and %d", i, p.used, p.idle, q.used,
				q.idle)
		}
	}
	for _, w := range x.live {
		if p, q := a.WorkingSet(w.seqs[0]), b.WorkingSet(w.seqs[1]); p != q {
			x.Fatalf("working set of %d bytes, where marks wait %d", p, q)
		}
	}
	if rapid.IntRange(0, 9).Draw(x.T, "look at blocks") > 0 {
		return
	}
	for _, c := range x.caches {
		if err := c.Check(); err != nil {
			x.Fatal(err)
		}
	}
	for _, w := range x.live {
		for g := range w.told {
			if p, q := w.seqs[0].row(g), w.seqs[1].synced(g); !slices.Equal(p, q) {
				x.Fatalf("group %d:\n%x, where marks wait\n%x", g, p, q)
			}
		}
	}
}

// A cache with deferred marks behaves as a cache without histories.
func TestMarksThatWaitAreThoseThatDoNot(t *testing.T) {
	waited := 0
	rapid.Check(t, func(t *rapid.T) {
		x := &twins{T: t, window: rapid.IntRange(1, 3).Draw(t, "window of blocks"),
			calm: rapid.SampledFrom([]int{1000, 100, 20}).Draw(t, "calm"),
			lag:  rapid.SampledFrom([]int{0, 4, 7}).Draw(t, "lag")}
		x.rand = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		geo := small(rapid.IntRange(1, 2).Draw(t, "layers"), rapid.IntRange(1, 2).Draw(t, "heads"))
		slots := geo.Groups() * rapid.SampledFrom([]int{45, 90, 150, 250}).Draw(t, "slots a group")
		cfg := Config{Geometry: geo, Sample: FullSample(geo), HBMBytes: int64(slots) * geo.BlockBytes,
			Eviction: LRU, Window: rapid.SampledFrom([]int{1, 5, 12, 14}).Draw(t, "window"),
			PerLayer: rapid.Bool().Draw(t, "per layer")}
		for i := range x.caches {
			var err error
			if x.caches[i], err = NewCache(cfg); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(4, 12).Draw(t, "phases") {
			anew := rapid.Bool().Draw(t, "anew")
			for _, w := range x.live {
				if x.name(w); anew {
					clear(w.told)
				}
			}
			if len(x.live) < 4 {
				x.open()
			}
			batch := slices.Clone(x.live)
			if rapid.IntRange(0, 3).Draw(t, "one is absent") == 0 {
				batch = batch[1:]
			}
			for range rapid.SampledFrom([]int{30, 60, 10}).Draw(t, "steps") {
				if len(batch) == 0 || x.full {
					break
				}
				if x.decode(batch); x.full {
					return
				}
				x.compare()
				for i := len(batch) - 1; i >= 0; i-- {
					for _, gs := range batch[i].seqs[1].groups {
						if gs.synced != gs.last && gs.history != nil {
							waited++
						}
					}
					if w := batch[i]; w.tokens == w.most {
						batch = slices.Delete(batch, i, i+1)
						x.free(w)
					}
				}
			}
			for _, w := range x.live { // those who were absent select anew
				if !slices.Contains(batch, w) {
					clear(w.told)
				}
			}
		}
	})
	if waited == 0 {
		t.Fatal("no mark ever waited")
	}
}

func (x *twins) free(w *twin) {
	if x.pinned == w {
		x.pinned = nil
	}
	x.each(func(i int, c *Cache) error { c.Free(w.seqs[i]); return nil })
	x.live = slices.DeleteFunc(x.live, func(v *twin) bool { return v == w })
}
