package kv

import (
	"math/bits"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawTrace records a random run in a cache that holds everything: requests
// come, decode, pause and go.
func drawTrace(t *rapid.T, geo Geometry, requests, prompt, steps, picks int) *Trace {
	trace, micro := &Trace{}, rapid.IntRange(0, 2).Draw(t, "microbatch")
	c, err := NewCache(Config{Geometry: geo, Sample: FullSample(geo), HBMBytes: 1 << 30, Eviction: LRU,
		Window: 1, Trace: trace, Microbatch: micro})
	if err != nil {
		t.Fatal(err)
	}
	type live struct {
		*Seq
		tokens int
	}
	type group struct {
		seq int // of the requests
		g   int
	}
	before := map[group][]uint16{} // last selection
	var all []live
	for n := range rapid.IntRange(1, steps).Draw(t, "steps") {
		if len(all) < requests && rapid.Bool().Draw(t, "come") || len(all) == 0 {
			s := live{c.Open(prompt + steps), rapid.IntRange(1, prompt).Draw(t, "prompt")}
			s.Request = n
			c.Extend(s.Seq, s.tokens)
			if err := c.Segmented(s.Seq); err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		if rapid.IntRange(0, 5).Draw(t, "go") == 0 {
			c.Free(all[0].Seq)
			all = all[1:]
		}
		var batch []*Seq
		for i := range all {
			if rapid.IntRange(0, 3).Draw(t, "in") > 0 {
				all[i].tokens++
				c.Extend(all[i].Seq, all[i].tokens)
				batch = append(batch, all[i].Seq)
			}
		}
		c.BeginStep(batch)
		for _, l := range c.layers {
			for _, s := range batch {
				for g := l.From; g < l.To; g++ {
					sel := Selection{Sinks: 1, Tail: s.blocks - 1}
					if sel.All = s.blocks-2 <= picks; !sel.All {
						sel.Next = rapid.Permutation(seq(s.blocks-2)).Draw(t, "sel")[:picks]
						if sel.Used = picks; micro > 0 {
							sel.Used = rapid.IntRange(1, picks).Draw(t, "used")
						}
					}
					at := group{s.Request, g}
					if old := before[at]; old != nil && !sel.All {
						sel.Follows = true
						sel.Added, sel.Came, sel.Dropped = differ(old, sel.Next)
					}
					before[at] = sel.Next
					c.Access(s, g, &sel)
				}
			}
			if _, err := c.Fill(l); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range batch {
			c.Saved(s, s.full)
		}
	}
	return trace
}

// replay runs a trace in a cache.
func replay(t *rapid.T, trace *Trace, cfg Config) (Stats, error) {
	cfg.Geometry, cfg.Sample, cfg.Microbatch, cfg.Score, cfg.Window = trace.Geo, trace.Sample,
		trace.Microbatch, coarse, 1
	c, err := NewCache(cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = trace.replay(c)
	if err == nil {
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	return c.Stats(), err
}

// A replay is the run: recorded again it gives the same trace.
func TestReplayRepeatsTheRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trace := drawTrace(t, small(2, 2), 3, 60, 30, 3)
		if trace.Steps() == 0 {
			t.Skip("nothing decoded")
		}
		again := &Trace{}
		if _, err := replay(t, trace,
			Config{HBMBytes: 1 << 30, Eviction: LRU, Trace: again}); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(trace.steps, again.steps) ||
			!reflect.DeepEqual(trace.requests, again.requests) {
			t.Fatalf("recorded\n%+v\n%+v\nand again\n%+v\n%+v", trace.requests, trace.steps, again.requests,
				again.steps)
		}
	})
}

// No eviction order loads less than MIN, with one pool and with one a layer; where everything fits
// all load the same, except for unused loads of progressive attention.
func TestNothingBeatsTheOptimum(t *testing.T) {
	compared, strict, ahead := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		geo := small(rapid.IntRange(1, 3).Draw(t, "layers"), rapid.IntRange(1, 2).Draw(t, "heads"))
		trace := drawTrace(t, geo, 3, 60, 40, 3)
		if trace.Steps() == 0 {
			t.Skip("nothing decoded")
		}
		perLayer := rapid.Bool().Draw(t, "per layer")
		slots := int64(geo.Groups() * rapid.IntRange(6, 40).Draw(t, "slots a group"))
		all, err := trace.Optimum(1<<30, perLayer)
		if err != nil {
			t.Fatal(err)
		}
		optimum, tooSmall := trace.Optimum(slots*geo.BlockBytes, perLayer)
		for _, e := range Evictions() {
			roomy, err := replay(t, trace, Config{HBMBytes: 1 << 30, Eviction: e.Name, PerLayer: perLayer})
			if err != nil || roomy.Loaded < all.Loaded || roomy.Loaded-roomy.Ahead > all.Loaded ||
				roomy.Selected != all.Selected {
				t.Fatalf("%s with room for all: %+v (%v), MIN %+v", e.Name, roomy, err, all)
			}
			got, err := replay(t, trace, Config{HBMBytes: slots * geo.BlockBytes, Eviction: e.Name,
				PerLayer: perLayer})
			if err != nil {
				continue // a cache must hold what MIN need not
			}
			if tooSmall != nil && trace.Microbatch > 0 {
				continue // it gives the slots of one round to the next
			}
			if tooSmall != nil {
				t.Fatalf("%s can, MIN cannot: %v", e.Name, tooSmall)
			}
			if got.Loaded < optimum.Loaded || got.Selected != optimum.Selected {
				t.Fatalf("%s in %d slots: %+v, MIN %+v", e.Name, slots, got, optimum)
			}
			compared++
			if got.Ahead > 0 {
				ahead++
			}
			if got.Loaded > optimum.Loaded {
				strict++
			}
		}
	})
	if (compared < 100 || strict < 20 || ahead < 20) && !testing.Short() {
		t.Errorf("%d caches compared, %d of them loaded more than MIN, %d in vain", compared,
			strict, ahead)
	}
}

// MIN against a search over all that could be evicted at every turn.
func TestOptimumAgainstSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trace := drawTrace(t, small(rapid.IntRange(1, 2).Draw(t, "layers"), 1), 2, 22, 8, 1)
		if trace.Steps() == 0 || trace.ids() > 24 {
			t.Skip("none, or too many blocks to search")
		}
		slots := rapid.IntRange(3, 9).Draw(t, "slots")
		got, err := trace.Optimum(int64(slots)*trace.Geo.BlockBytes, false)
		if want := search(trace, slots); want < 0 != (err != nil) || err == nil && got.Loaded != want {
			t.Fatalf("MIN in %d slots: %+v (%v), search finds %d", slots, got, err, want)
		}
	})
}

// search returns the fewest loads of a trace in one pool, -1 when none suffice.
func search(t *Trace, slots int) int64 {
	states := map[uint32]int64{0: 0} // loads so far, by what is in HBM
	known := uint32(0)               // blocks that have been used before
	t.turns(func(_, _ int, ids []int32, _ int) error {
		want, load := uint32(0), uint32(0)
		for _, id := range ids {
			want |= 1 << id
			if known>>id&1 == 1 || stored(t, int(id)) {
				load |= 1 << id
			}
		}
		known |= want
		after := map[uint32]int64{}
		for in, loads := range states {
			loads += int64(bits.OnesCount32(load &^ in))
			others := in &^ want
			for keep := others; ; keep = (keep - 1) & others {
				if now := keep | want; bits.OnesCount32(now) <= slots {
					if old, ok := after[now]; !ok || loads < old {
						after[now] = loads
					}
				}
				if keep == 0 {
					break
				}
			}
		}
		states = after
		return nil
	})
	best := int64(-1)
	for _, loads := range states {
		if best < 0 || loads < best {
			best = loads
		}
	}
	return best
}

// stored reports whether a block is in DRAM when its request enters.
func stored(t *Trace, id int) bool {
	for i := range t.requests {
		r := &t.requests[i]
		if n := r.blocks * len(t.Sample.Groups); id >= n {
			id -= n
			continue
		}
		return id%r.blocks < r.stored
	}
	panic("no such block")
}

// By hand: one group, selections of one block, three slots.
func TestOptimumByHand(t *testing.T) {
	geo := small(1, 1)
	trace := &Trace{}
	c, err := NewCache(Config{Geometry: geo, Sample: FullSample(geo), HBMBytes: 1 << 20, Eviction: LRU,
		Window: 1, Trace: trace})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Open(10 * 4)
	c.Extend(s, 40)
	for _, next := range []uint16{0, 1, 2, 3, 0, 1, 4, 0, 1, 2, 3} {
		c.BeginStep([]*Seq{s})
		c.Access(s, 0, &Selection{Tail: 10, Picks: Picks{Next: []uint16{next}, Used: 1}})
		if _, err := c.Fill(c.layers[0]); err != nil {
			t.Fatal(err)
		}
	}
	// 3 takes the place of 2, 4 that of 3; 2 and 3 come back at the end.
	got, err := trace.Optimum(3*geo.BlockBytes, false)
	if err != nil || got.Selected != 11 || got.Loaded != 7 {
		t.Errorf("%+v (%v), want 7 loads of 11 selected", got, err)
	}
	if _, err := trace.Optimum(0, false); err == nil || !strings.Contains(err.Error(), "too few") {
		t.Errorf("no slots: error is %v", err)
	}
}

func TestTraceIsNotForDetail(t *testing.T) {
	geo := small(1, 1)
	cfg := Config{Geometry: geo, Sample: FullSample(geo), Eviction: LRU, Window: 1, Trace: &Trace{},
		Addressed: true}
	if _, err := NewCache(cfg); err == nil {
		t.Error("no error")
	}
}
