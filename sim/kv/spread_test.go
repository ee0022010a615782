package kv

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Loads anywhere in their requests, whatever the heads', are spread over as many
// blocks of tokens as Spread expects, and what is read again has the bytes of its
// request. A sample of the heads expects what all of them do.
func TestSpreadCountsPages(t *testing.T) {
	near := func(what string, got, want int64, off float64) {
		t.Helper()
		if math.Abs(float64(got-want)) > off*float64(want) {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	for _, heads := range []int{1, 4, 16} {
		for _, each := range []int{1, 6, 40} {
			geo := small(4, heads)
			t.Logf("%d heads, %d blocks of each", heads, each)
			all := spreadOf(t, geo, FullSample(geo), each)
			if all.loads != int64(2*each*geo.Groups()) {
				t.Fatalf("%d loads", all.loads)
			}
			near("pages", all.pages, all.exactPages, 0.05+2/float64(all.exactPages)) // they are whole
			if heads == 1 && all.pages != all.loads {
				t.Errorf("%d pages of one head's %d loads", all.pages, all.loads)
			}
			if each > 1 && heads > 1 { // else hardly any place is read again
				near("span", all.span, all.exactSpan, 0.15)
			}
			if heads > 1 {
				some := spreadOf(t, geo, HashSample(geo, 2*heads, 1), each)
				near("pages with a sample", some.pages, all.pages, 0.01+4/float64(all.pages))
				near("span with a sample", some.span, all.span, 0.01)
			}
		}
	}
}

// spread is what Spread says, summed over the layers, and what is true.
type spread struct{ loads, pages, exactPages, span, exactSpan int64 }

// spreadOf loads so many blocks of each head of two requests, one ten times as long.
func spreadOf(t *testing.T, geo Geometry, sample Sample, each int) (sum spread) {
	t.Helper()
	full := sample.Rate == 1
	c, err := NewCache(Config{Geometry: geo, Sample: sample, HBMBytes: 64 << 20, Eviction: LRU,
		Window: 1, Addressed: full})
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
	var again, bytes int64 // of loads after the first of their page
	for _, l := range c.layers {
		for _, s := range seqs {
			for g := l.From; g < l.To; g++ {
				next := make([]uint16, each)
				for i, b := range r.Perm(s.blocks)[:each] {
					next[i] = uint16(b)
				}
				c.Access(s, g, &Selection{Tail: s.blocks, Next: next, Used: each})
			}
		}
		n, err := c.Fill(l)
		if err != nil {
			t.Fatal(err)
		}
		sum.loads += n
		if !full {
			continue
		}
		type place struct{ seq, block int32 }
		seen := map[place]bool{}
		for _, ref := range c.Refs() {
			at := place{ref.Seq, ref.Block}
			if seen[at] {
				again++
				bytes += int64(c.seqs[ref.Seq].blocks*geo.Groups()) * geo.BlockBytes
			}
			seen[at] = true
		}
		sum.exactPages += int64(len(seen))
		pages, span := c.Spread(1)
		sum.pages, sum.span = sum.pages+pages, span
	}
	if again > 0 {
		sum.exactSpan = bytes / again
	}
	if !full {
		sum.pages, sum.span = c.Spread(geo.Layers)
		sum.pages *= int64(geo.Layers)
	}
	if p, s := c.Spread(1); p != 0 || s != 0 || len(c.missedBy) > 0 {
		t.Errorf("%d pages, a span of %d and %d requests once all are told", p, s, len(c.missedBy))
	}
	return sum
}

// A request that ends before its loads are reported has none, and one load in some
// layers is at most one place.
func TestSpreadOfFewLoads(t *testing.T) {
	geo := small(4, 2)
	c, err := NewCache(Config{Geometry: geo, Sample: FullSample(geo), HBMBytes: 1 << 20, Eviction: LRU,
		Window: 1})
	if err != nil {
		t.Fatal(err)
	}
	load := func() *Seq {
		s := c.Open(40)
		c.Extend(s, 40)
		if err := c.Segmented(s); err != nil {
			t.Fatal(err)
		}
		c.BeginStep([]*Seq{s})
		c.Access(s, 0, &Selection{Tail: s.blocks, Next: []uint16{3}, Used: 1})
		if n, err := c.Fill(c.layers[0]); err != nil || n != 1 {
			t.Fatalf("%d loads, %v", n, err)
		}
		return s
	}
	c.Free(load())
	if pages, span := c.Spread(1); pages != 0 || span != 0 {
		t.Errorf("%d pages and a span of %d of what has left", pages, span)
	}
	load()
	if pages, _ := c.Spread(4); pages != 1 {
		t.Errorf("%d pages of one load in four layers", pages)
	}
}
