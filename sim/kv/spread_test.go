package kv

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Loads that lie anywhere in their requests lie over as many blocks of tokens as
// Spread expects, and what is read again has the bytes of its request. A sample of
// the heads expects what all of them do.
func TestSpreadCountsPlaces(t *testing.T) {
	geo := small(4, 16)
	for _, each := range []int{1, 6, 40} {
		spread := func(sample Sample) (loads, exact, places, span int64) {
			c, err := NewCache(Config{Geometry: geo, Sample: sample, HBMBytes: 64 << 20, Eviction: LRU, Window: 1, Detail: sample.Rate == 1})
			if err != nil {
				t.Fatal(err)
			}
			seqs := []*Seq{c.Open(400), c.Open(4000)} // 100 blocks, and 1000 of which no more are selected
			for _, s := range seqs {
				c.Extend(s, s.cap*geo.BlockTokens)
				if err := c.Segmented(s); err != nil {
					t.Fatal(err)
				}
			}
			c.BeginStep(seqs)
			r := rand.New(rand.NewPCG(1, uint64(each)))
			full := sample.Rate == 1
			for li := range c.layers {
				for _, s := range seqs {
					for g := c.layers[li].from; g < c.layers[li].to; g++ {
						next := make([]uint16, each)
						for i, b := range r.Perm(s.blocks)[:each] {
							next[i] = uint16(b)
						}
						c.Access(s, g, &Selection{Tail: s.blocks, Next: next, Used: each})
					}
				}
				n, err := c.Fill(li)
				if err != nil {
					t.Fatal(err)
				}
				if full {
					type place struct{ seq, block int32 }
					seen := map[place]bool{}
					for _, ref := range c.Refs() {
						seen[place{ref.Seq, ref.Block}] = true
					}
					p, s := c.Spread(1)
					loads, exact, places, span = loads+n, exact+int64(len(seen)), places+p, s
				}
			}
			if !full {
				places, span = c.Spread(geo.Layers)
				places *= int64(geo.Layers)
			}
			if p, s := c.Spread(1); p != 0 || s != 0 {
				t.Errorf("%d blocks a head: %d places and a span of %d once all are told", each, p, s)
			}
			return
		}
		loads, exact, places, span := spread(FullSample(geo))
		if loads != int64(2*each*geo.Groups()) {
			t.Fatalf("%d blocks a head: %d loads", each, loads)
		}
		if math.Abs(float64(places-exact)) > 0.05*float64(exact) {
			t.Errorf("%d blocks a head, %d loads: %d places, want %d", each, loads, places, exact)
		}
		least, most := int64(100*geo.Groups())*geo.BlockBytes, int64(1000*geo.Groups())*geo.BlockBytes
		if span < least || span > most {
			t.Errorf("%d blocks a head: a span of %d, want %d to %d", each, span, least, most)
		}
		_, _, some, spans := spread(HashSample(geo, 16, 1))
		if math.Abs(float64(some-places)) > 4 || math.Abs(float64(spans-span)) > 0.01*float64(span) {
			t.Errorf("%d blocks a head: %d places and a span of %d with a sample, want %d and %d", each, some, spans, places, span)
		}
	}
}
