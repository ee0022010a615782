package kv

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func small(layers, heads int) Geometry {
	return Geometry{Layers: layers, KVHeads: heads, BlockTokens: 4, BlockBytes: 1024, MetaBytes: 32}
}

// Laws 1, 3, 7 and exact LRU: random traces against the naive reference. When
// addressed many blocks get their slots at once.
func TestLaw1Law3CacheAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newScript(t, Config{Eviction: "lru", Addressed: rapid.Bool().Draw(t, "addressed")})
		x.run()
		c := x.c
		for id := range x.seqs {
			c.Free(x.seqs[id])
		}
		if c.pools[0].used != 0 || c.reserved != 0 {
			t.Fatalf("%d blocks and %d reserved bytes left after all are freed", c.pools[0].used, c.reserved)
		}
	})
}

// Law 11 (cache part): an LRU cache of more slots never misses more.
func TestLaw11MoreSlotsNeverMissMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		geo := small(2, 2)
		trace := [][]uint16{}
		for range 60 {
			trace = append(trace, rapid.Permutation(seq(30)).Draw(t, "perm")[:6])
		}
		run := func(slots int) int64 {
			c, err := NewCache(Config{Geometry: geo, Sample: FullSample(geo),
				HBMBytes: int64(slots) * geo.BlockBytes, Eviction: "lru", Window: 4})
			if err != nil {
				t.Fatal(err)
			}
			s := c.Open(32 * 4)
			c.Extend(s, 31*4)
			if err := c.Segmented(s); err != nil {
				t.Fatal(err)
			}
			for _, next := range trace {
				c.BeginStep([]*Seq{s})
				for _, l := range c.layers {
					for g := l.From; g < l.To; g++ {
						c.Access(s, g, &Selection{Sinks: 1, Tail: 31, Picks: Picks{Next: next, Used: len(next)}})
					}
					if _, err := c.Fill(l); err != nil {
						t.Fatal(err)
					}
				}
			}
			return c.Stats().Loaded
		}
		last := run(30)
		for slots := 34; slots <= 130; slots += rapid.IntRange(1, 20).Draw(t, "more") {
			now := run(slots)
			if now > last {
				t.Fatalf("%d slots miss %d times, fewer slots %d", slots, now, last)
			}
			last = now
		}
	})
}

func TestFullHBMIsAnErrorNotALoss(t *testing.T) {
	geo := small(1, 1)
	c, _ := NewCache(Config{Geometry: geo, Sample: FullSample(geo), HBMBytes: 3 * geo.BlockBytes,
		Eviction: "lru", Window: 2})
	s := c.Open(100)
	c.Extend(s, 40)
	s.Pin(0)
	c.Write(c.layers[0], s)
	if _, err := c.Fill(c.layers[0]); err == nil {
		t.Fatal("10 pinned blocks fitted 3 slots")
	}
}

func TestHashSampleCoversLayersEvenly(t *testing.T) {
	g := Geometry{Layers: 32, KVHeads: 32}
	for _, n := range []int{1, 16, 32, 100, 1023, 1024, 5000} {
		s := HashSample(g, n, 1)
		want := min(n, 1024)
		if len(s.Groups) != want || s.Rate != float64(want)/1024 {
			t.Fatalf("%d: %d groups at rate %v", n, len(s.Groups), s.Rate)
		}
		per := map[int32]int{}
		for i, id := range s.Groups {
			if i > 0 && id <= s.Groups[i-1] {
				t.Fatal("groups repeat or are not ascending")
			}
			per[id/32]++
		}
		for l, k := range per {
			if k > want/32+1 {
				t.Fatalf("%d groups: layer %d has %d", n, l, k)
			}
		}
	}
}

func BenchmarkAccess(b *testing.B) {
	for _, groups := range []int{16, 1024} {
		b.Run(fmt.Sprint(groups, "groups"), func(b *testing.B) { benchAccess(b, groups) })
	}
}

func benchAccess(b *testing.B, groups int) {
	geo := Geometry{Layers: 32, KVHeads: 32, BlockTokens: 32, BlockBytes: 16384, MetaBytes: 512}
	step := steady(b, Config{Geometry: geo, Eviction: "lru"}, groups)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		step()
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*8*groups), "ns/group")
}

// steady returns a step of 8 decoding requests of 400 blocks whose selections
// change by an eighth, in a cache of 1.6 selections a request.
func steady(t testing.TB, cfg Config, groups int) func() {
	geo := cfg.Geometry
	cfg.Sample, cfg.HBMBytes, cfg.Window = HashSample(geo, groups, 1),
		8*110*int64(geo.Groups())*geo.BlockBytes, 12
	c, err := NewCache(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var seqs []*Seq
	for range 8 {
		s := c.Open(400 * 32)
		c.Extend(s, 399*32+1)
		if err := c.Segmented(s); err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, s)
	}
	const steps, k = 64, 60
	sets := make([][]uint16, steps)
	added, came, dropped := make([][]uint16, steps), make([][]uint16, steps), make([][]uint16, steps)
	for i := range sets {
		sets[i] = make([]uint16, k)
		for j := range sets[i] {
			sets[i][j] = uint16(j)
		}
		for j := range 8 {
			pos := (i*8 + j) % k
			sets[i][pos] = uint16(60 + (i*8+j*37)%300/60*60 + pos)
		}
	}
	for i := range sets {
		added[i], came[i], dropped[i] = differ(sets[(i+steps-1)%steps], sets[i])
	}
	at := 0
	sel := &Selection{}
	return func() {
		at = (at + 1) % steps
		c.BeginStep(seqs)
		for _, l := range c.layers {
			for _, s := range seqs {
				for g := l.From; g < l.To; g++ {
					*sel = Selection{Sinks: 2, Tail: 398, Picks: Picks{Next: sets[at], Used: k, Follows: true,
						Added: added[at], Came: came[at], Dropped: dropped[at]}}
					c.Access(s, g, sel)
				}
			}
			if _, err := c.Fill(l); err != nil {
				panic(err)
			}
		}
	}
}
