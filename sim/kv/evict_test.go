package kv

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/des"
)

// naive is an eviction order as its paper states it, over one plain list.
type naive interface {
	hit(block)      // selected while it is in HBM
	enter(block)    // got a slot
	gone(seq int32) // its request has gone
	// victim returns the block to evict; idle says which can go, and one can.
	victim(idle func(block) bool) block
}

// coarse are scores among which many are equal.
func coarse(s *Seq, g, b int) float32 {
	steps, _ := s.Seen(g)
	return float32(des.Hash(uint64(s.id), uint64(steps), uint64(g), uint64(b)) % 7)
}

func (x *script) hit(key [3]int, g int) {
	if x.naive != nil {
		x.naive[x.c.poolOf[g]].hit(block{int(x.seqs[key[0]].id), key[1], key[2]})
	}
}

// checked asks an evictor and its reference, which must agree.
type checked struct {
	evictor
	naive
	pool  int
	t     *rapid.T
	count *int
}

func (x *checked) entered(c *Cache, r ref) {
	x.evictor.entered(c, r)
	x.naive.enter(blockOf(r))
}

func (x *checked) victim(c *Cache, only *Layer) (ref, bool) {
	idle := func(b block) bool {
		return c.at(ref{seq: int32(b.seq), group: uint16(b.group), block: uint16(b.index)}).idle()
	}
	got, ok := x.evictor.victim(c, only)
	if any := c.pools[x.pool].idle > 0; ok != any {
		x.t.Fatalf("victim %v, %v; pool has %d idle blocks", got, ok, c.pools[x.pool].idle)
	}
	if ok {
		*x.count++
		if want := x.naive.victim(idle); blockOf(got) != want {
			x.t.Fatalf("evicted %v, the reference %v", blockOf(got), want)
		}
	}
	return got, ok
}

// Every order evicts what a naive one over a plain list does, whatever requests
// come, decode, pause and go. (LRU has its own: TestLaw1Law3CacheAgainstReference.)
func TestEvictionAgainstReferences(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(*Cache) naive
	}{
		{FIFO, func(*Cache) naive { return &naiveFIFO{} }},
		{CLOCK, func(*Cache) naive { return &naiveClock{} }},
		{SIEVE, func(*Cache) naive { return &naiveSieve{} }},
		{ByScore, func(c *Cache) naive { return &naiveScore{c: c} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			victims := 0
			rapid.Check(t, func(t *rapid.T) {
				x := newScript(t, Config{Eviction: c.name, Score: coarse,
					PerLayer: rapid.Bool().Draw(t, "per layer")})
				for i := range x.c.pools {
					n := c.make(x.c)
					x.naive = append(x.naive, n)
					x.c.pools[i].order = &checked{x.c.pools[i].order, n, i, t, &victims}
				}
				x.run()
			})
			t.Logf("%d victims compared", victims)
			if victims < 50 && !testing.Short() {
				t.Errorf("only %d victims were compared", victims)
			}
		})
	}
}

// victims are the blocks that a cache of one group and three slots evicts while
// its selections of one block are those given.
func victims(t *testing.T, eviction string, score Score, selections ...uint16) []int {
	t.Helper()
	geo := small(1, 1)
	c, err := NewCache(Config{Geometry: geo, Sample: FullSample(geo), HBMBytes: 3 * geo.BlockBytes,
		Eviction: eviction, Score: score, Window: 2})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Open(10 * 4)
	c.Extend(s, 40)
	if err := c.Segmented(s); err != nil {
		t.Fatal(err)
	}
	var gone []int
	for _, next := range selections {
		var before []int
		for b, m := range s.row(0) {
			if m.resident() {
				before = append(before, b)
			}
		}
		c.BeginStep([]*Seq{s})
		c.Access(s, 0, &Selection{Tail: 10, Picks: Picks{Next: []uint16{next}, Used: 1}})
		if _, err := c.Fill(c.layers[0]); err != nil {
			t.Fatal(err)
		}
		for _, b := range before {
			if !s.row(0)[b].resident() {
				gone = append(gone, b)
			}
		}
	}
	return gone
}

// By hand: where the orders differ.
func TestEvictionByHand(t *testing.T) {
	falling := func(_ *Seq, _, b int) float32 { return float32(-b) }
	for _, c := range []struct {
		eviction   string
		selections []uint16
		want       []int
	}{
		{LRU, []uint16{0, 1, 2, 0, 3}, []int{1}},
		{FIFO, []uint16{0, 1, 2, 0, 3}, []int{0}},
		// 0 was visited and goes behind 2; then 2 is next, and 0 after 3.
		{CLOCK, []uint16{0, 1, 2, 0, 3, 4, 5, 6}, []int{1, 2, 0, 3}},
		// 0 keeps the tail and the hand goes on: 2, 3 though it just came, 4.
		{SIEVE, []uint16{0, 1, 2, 0, 3, 4, 5, 6}, []int{1, 2, 3, 4}},
		// All visited: the hand comes round to the first.
		{CLOCK, []uint16{0, 1, 2, 0, 1, 2, 3}, []int{0}},
		{SIEVE, []uint16{0, 1, 2, 0, 1, 2, 3}, []int{0}},
		{ByScore, []uint16{0, 1, 2, 0, 3, 4}, []int{2, 3}},
	} {
		if got := victims(t, c.eviction, falling, c.selections...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v evicts %v, want %v", c.eviction, c.selections, got, c.want)
		}
	}
}

// A hand between blocks whose request goes moves on, from the head to the tail.
func TestSieveHandMovesOnWhenARequestGoes(t *testing.T) {
	geo := small(1, 1)
	c, err := NewCache(Config{Geometry: geo, Sample: FullSample(geo), HBMBytes: 4 * geo.BlockBytes,
		Eviction: SIEVE, Window: 1})
	if err != nil {
		t.Fatal(err)
	}
	var seqs [2]*Seq
	for i := range seqs {
		seqs[i] = c.Open(10 * 4)
		c.Extend(seqs[i], 40)
		if err := c.Segmented(seqs[i]); err != nil {
			t.Fatal(err)
		}
	}
	stays, goes := seqs[0], seqs[1]
	decode := func(s *Seq, blocks ...uint16) {
		t.Helper()
		for _, b := range blocks {
			c.BeginStep([]*Seq{s})
			c.Access(s, 0, &Selection{Tail: 10, Picks: Picks{Next: []uint16{b}, Used: 1}})
			if _, err := c.Fill(c.layers[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	decode(stays, 0, 1)
	decode(goes, 0, 1)
	decode(stays, 0, 1) // visits
	decode(goes, 2)     // the hand passes both and evicts goes' 0: ahead are its 1 and 2
	c.Free(goes)
	decode(stays, 2, 3, 4)
	for b, want := range []bool{false, true, true, true, true} {
		if got := stays.row(0)[b].resident(); got != want {
			t.Errorf("block %d in HBM: %v, want %v", b, got, want)
		}
	}
}

func TestUnknownEviction(t *testing.T) {
	geo := small(1, 1)
	for eviction, want := range map[string]string{"mru": "known: lru, fifo, clock, sieve, score",
		ByScore: "needs the blocks' scores"} {
		_, err := NewCache(Config{Geometry: geo, Sample: FullSample(geo), HBMBytes: 1 << 20,
			Eviction: eviction, Window: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %q in it", eviction, err, want)
		}
	}
}

func BenchmarkEviction(b *testing.B) {
	for _, e := range Evictions() {
		b.Run(e.Name, func(b *testing.B) {
			step := steady(b, Config{
				Geometry: Geometry{Layers: 32, KVHeads: 32, BlockTokens: 32, BlockBytes: 16384, MetaBytes: 512},
				Eviction: e.Name, Score: coarse}, 16)
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

func TestEvictionAllocatesNothingInSteadyState(t *testing.T) {
	for _, e := range Evictions() {
		for _, perLayer := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s per layer %v", e.Name, perLayer), func(t *testing.T) {
				step := steady(t, Config{
					Geometry: Geometry{Layers: 4, KVHeads: 4, BlockTokens: 32, BlockBytes: 16384},
					Eviction: e.Name, Score: coarse, PerLayer: perLayer}, 16)
				for range 500 {
					step()
				}
				if n := testing.AllocsPerRun(200, step); n != 0 {
					t.Fatalf("%v allocations a step", n)
				}
			})
		}
	}
}
