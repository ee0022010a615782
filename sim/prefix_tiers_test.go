package sim_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Tiers of the prefix cache below HBM, worked by hand.

// FetchPrefix and SavePrefix of a device for working by hand: a load takes 7 ms, a save 5 ms, and
// what is on SSD is there 2 ms later.
func (d *metronome) FetchPrefix(at des.Time, _ sim.PrefixLoad) des.Time { return at + 7*ms }
func (d *metronome) SavePrefix(at des.Time, _, _ int64) (dram, onSSD des.Time) {
	return at + 5*ms, at + 7*ms
}

// Memory for four blocks. Request 1's eight tokens are saved when it ends and lost in HBM to
// request 2; request 3 comes with them again.
//
//	 0  request 1, tokens 0 to 8, in 10 + 2 x 8 ms; two decodes end at 46
//	50  request 2, twelve tokens in two steps to 94, with its decode to 104
//	60  request 3 arrives; memory is full until 104
//	104 its load begins; nothing else runs
//	111 it computes the last token's block, four of 12: 18 ms
func TestLoadBesideOthersByHand(t *testing.T) {
	for _, kind := range []string{sim.PrefixVLLM, sim.PrefixTree} {
		c := cachedByHand(4,
			sim.Arrival{Prompt: 8, Output: 3, Content: holding(0, text(1, 8))},
			sim.Arrival{At: 50 * ms, Prompt: 12, Output: 2, Content: holding(0, text(2, 12))},
			sim.Arrival{At: 60 * ms, Prompt: 12, Output: 1,
				Content: holding(0, text(1, 8), text(3, 4))})
		c.spec.PrefixCache.Mode = kind
		c.spec.PrefixCache.Chunk, c.spec.PrefixCache.DRAMGiB, c.spec.PrefixCache.Eviction = 4, 1,
			memory.LRU
		c.spec.PrefixCache.Write, c.spec.PrefixCache.Load = sim.WriteThrough, sim.LoadAlways
		c.spec.PrefixCache.Overlap = sim.OverlapRequest
		got, o, _ := c.lives(t, nil)
		expect(t, kind+" lives", got,
			map[int]life{1: {0, 26, 46, 0}, 2: {50, 94, 104, 0}, 3: {111, 129, 129, 0}})
		r := o.requests[2]
		expect(t, kind+" hits", [3]int{r.Hit, r.HitDRAM, r.HitSSD}, [3]int{8, 8, 0})
		if err := o.server.Check(); err != nil {
			t.Fatal(err)
		}
		stats := o.metrics.Summary().PrefixCache
		token := c.model.Geometry(4).BlockBytes / 4 * 2
		expect(t, kind+" loaded", stats.DRAM.LoadedBytes, 8*token)
		// Of request 3 all three blocks are written, of which two are there.
		expect(t, kind+" saved", stats.DRAM.WrittenBytes, 24*token)
	}
}

// Memory for four blocks, and two texts of three by turns. A tree writes back what it evicts, a
// text as a whole.
func TestTreesWriteBackByHand(t *testing.T) {
	c := cachedByHand(4,
		sim.Arrival{Prompt: 12, Output: 1, Content: holding(0, text(1, 12))},
		sim.Arrival{At: 100 * ms, Prompt: 12, Output: 1, Content: holding(0, text(2, 12))},
		sim.Arrival{At: 200 * ms, Prompt: 12, Output: 1, Content: holding(0, text(1, 12))})
	c.spec.PrefixCache.Mode = sim.PrefixTree
	c.spec.PrefixCache.Chunk, c.spec.PrefixCache.DRAMGiB, c.spec.PrefixCache.Eviction = 4, 1,
		memory.LRU
	c.spec.PrefixCache.Write, c.spec.PrefixCache.Load = sim.WriteBack, sim.LoadAlways
	c.spec.PrefixCache.Overlap = sim.OverlapNone
	_, o, _ := c.lives(t, nil)
	r := o.requests[2]
	expect(t, "hits", [3]int{r.Hit, r.HitDRAM, r.HitSSD}, [3]int{8, 8, 0})
	stats := o.metrics.Summary().PrefixCache
	token := c.model.Geometry(4).BlockBytes / 4 * 2
	expect(t, "loaded", stats.DRAM.LoadedBytes, 8*token)
	expect(t, "saved", stats.DRAM.WrittenBytes, 24*token)
	expect(t, "evicted", stats.HBM.Evicted, 6)
}

// Memory for four blocks, and two requests that load two each from SSD at once, through DRAM that
// has room for one's: when both have landed neither finds a third block, and what they have loaded
// is being written to DRAM again. The second gives its blocks up, once they have been.
func TestLandedLoadsMakeRoomByHand(t *testing.T) {
	for _, kind := range sim.PrefixCaches()[1:] {
		c := cachedByHand(4,
			sim.Arrival{Prompt: 8, Output: 1, Content: holding(0, text(1, 8))},
			sim.Arrival{At: 100 * ms, Prompt: 8, Output: 1, Content: holding(0, text(2, 8))},
			sim.Arrival{At: 200 * ms, Prompt: 12, Output: 4, Content: holding(0, text(3, 12))},
			sim.Arrival{At: 500 * ms, Prompt: 12, Output: 1, Content: holding(0, text(1, 8))},
			sim.Arrival{At: 500 * ms, Prompt: 12, Output: 1, Content: holding(0, text(2, 8))})
		geo := c.model.Geometry(4)
		c.spec.PrefixCache.Mode, c.spec.PrefixCache.SSDGiB = kind, 1
		c.spec.PrefixCache.DRAMGiB = 2 * float64(geo.BlockBytes*int64(geo.Groups())) / (1 << 30)
		c.spec.PrefixCache.Chunk, c.spec.PrefixCache.Eviction = 4, memory.LRU
		c.spec.PrefixCache.Write, c.spec.PrefixCache.Load = sim.WriteThrough, sim.LoadAlways
		c.spec.PrefixCache.Overlap = sim.OverlapRequest
		_, o, _ := c.lives(t, nil)
		expect(t, kind+" requests", len(o.requests), 5)
		for _, r := range o.requests[3:] {
			expect(t, kind+" hits", r.Hit, 8)
			expect(t, kind+" hits below HBM", r.HitDRAM+r.HitSSD, 8)
			expect(t, kind+" hits on SSD", r.HitSSD > 0, true)
		}
		stats := o.metrics.Summary().PrefixCache
		expect(t, kind+" hits in HBM", [2]int64{stats.HitTokens, stats.HBM.HitTokens}, [2]int64{16, 0})
	}
}

// Memory for five blocks, all of which the second text takes, and DRAM for five chunks: of the
// first text's three the last is still there when the second's four have been written, the others
// are on SSD alone. Each comes from one tier, 7 ms after the third request: four tokens are left to
// compute in 10 + 2 x 4 ms.
func TestHitsOfTwoTiersByHand(t *testing.T) {
	for _, kind := range sim.PrefixCaches()[1:] {
		c := cachedByHand(5,
			sim.Arrival{Prompt: 12, Output: 1, Content: holding(0, text(1, 12))},
			sim.Arrival{At: 200 * ms, Prompt: 16, Output: 2, Content: holding(0, text(2, 16))},
			sim.Arrival{At: 400 * ms, Prompt: 16, Output: 1, Content: holding(0, text(1, 12))})
		geo := c.model.Geometry(4)
		chunk := geo.BlockBytes * int64(geo.Groups())
		c.spec.PrefixCache.Mode, c.spec.PrefixCache.Chunk, c.spec.PrefixCache.Eviction = kind, 4,
			memory.LRU
		c.spec.PrefixCache.DRAMGiB, c.spec.PrefixCache.SSDGiB = 5*float64(chunk)/(1<<30), 1
		c.spec.PrefixCache.Write, c.spec.PrefixCache.Load = sim.WriteThrough, sim.LoadAlways
		c.spec.PrefixCache.Overlap = sim.OverlapRequest
		got, o, _ := c.lives(t, nil)
		expect(t, kind+" life", got[3], life{407, 425, 425, 0})
		r := o.requests[2]
		expect(t, kind+" hits", [3]int{r.Hit, r.HitDRAM, r.HitSSD}, [3]int{12, 4, 8})
		stats := o.metrics.Summary().PrefixCache
		expect(t, kind+" hits of tiers", [4]int64{stats.HitTokens, stats.HBM.HitTokens,
			stats.DRAM.HitTokens, stats.SSD.HitTokens}, [4]int64{12, 0, 4, 8})
		expect(t, kind+" loaded", [2]int64{stats.DRAM.LoadedBytes, stats.SSD.LoadedBytes},
			[2]int64{chunk, 2 * chunk})
	}
}

// With SSD alone, what passes through DRAM makes no tier of it, in a window either. HBM keeps one
// block of the first text's three.
func TestSSDAloneHasNoDRAMTier(t *testing.T) {
	for _, cutoff := range []metrics.Cutoff{{}, {Warmup: metrics.CutShare, Drain: metrics.CutShare}} {
		c := cachedByHand(4,
			sim.Arrival{Prompt: 12, Output: 1, Content: holding(0, text(1, 12))},
			sim.Arrival{At: 100 * ms, Prompt: 12, Output: 1, Content: holding(0, text(2, 12))},
			sim.Arrival{At: 200 * ms, Prompt: 12, Output: 1, Content: holding(0, text(1, 12))})
		c.spec.PrefixCache.Mode, c.spec.PrefixCache.Chunk, c.spec.PrefixCache.SSDGiB = sim.PrefixVLLM,
			4, 1
		c.spec.PrefixCache.Eviction, c.spec.PrefixCache.Write = memory.LRU, sim.WriteThrough
		c.spec.PrefixCache.Load, c.spec.PrefixCache.Overlap = sim.LoadAlways, sim.OverlapRequest
		c.cutoff = cutoff
		_, o, _ := c.lives(t, nil)
		stats := o.metrics.Summary().PrefixCache
		token := c.model.Geometry(4).BlockBytes / 4 * 2
		expect(t, "DRAM", stats.DRAM, metrics.PrefixTier{})
		expect(t, "SSD", stats.SSD, metrics.PrefixTier{HitTokens: 4, LoadedBytes: 4 * token,
			WrittenBytes: 24 * token})
	}
}

// Memory for five blocks. A request that runs alone has three and another loads two meanwhile: when
// the first one needs a fourth block, it gets those.
func TestWhoRunsAloneGetsWhatOthersLoaded(t *testing.T) {
	for _, kind := range sim.PrefixCaches()[1:] {
		c := cachedByHand(5,
			sim.Arrival{Prompt: 8, Output: 1, Content: holding(0, text(1, 8))},
			sim.Arrival{At: 100 * ms, Prompt: 16, Output: 4, Content: holding(0, text(2, 16))},
			sim.Arrival{At: 200 * ms, Prompt: 12, Output: 8, Content: holding(0, text(3, 12))},
			sim.Arrival{At: 201 * ms, Prompt: 12, Output: 1, Content: holding(0, text(1, 8))})
		c.spec.PrefixCache.Mode, c.spec.PrefixCache.Chunk, c.spec.PrefixCache.DRAMGiB = kind, 4, 1
		c.spec.PrefixCache.Eviction, c.spec.PrefixCache.Write = memory.LRU, sim.WriteBack
		c.spec.PrefixCache.Load, c.spec.PrefixCache.Overlap = sim.LoadAlways, sim.OverlapRequest
		_, o, _ := c.lives(t, nil)
		expect(t, kind+" requests", len(o.requests), 4)
		expect(t, kind+" first", o.requests[2].ID, 3)
		expect(t, kind+" preemptions", o.requests[2].Preemptions, 1)
		expect(t, kind+" hits of the other", o.requests[3].HitDRAM, 8)
	}
}

// A hit of eight tokens below HBM is loaded if that is the least, and computed if nine are.
func TestShortHitsAreComputed(t *testing.T) {
	for least, want := range map[int]int{8: 8, 9: 0} {
		for _, kind := range sim.PrefixCaches()[1:] {
			c := cachedByHand(6,
				sim.Arrival{Prompt: 12, Output: 1, Content: holding(0, text(1, 12))},
				sim.Arrival{At: 100 * ms, Prompt: 20, Output: 4, Content: holding(0, text(2, 20))},
				sim.Arrival{At: 500 * ms, Prompt: 12, Output: 1, Content: holding(0, text(1, 12))})
			c.spec.PrefixCache.Mode, c.spec.PrefixCache.LoadTokens = kind, least
			c.spec.PrefixCache.Chunk, c.spec.PrefixCache.DRAMGiB, c.spec.PrefixCache.Eviction = 4, 1,
				memory.LRU
			c.spec.PrefixCache.Write, c.spec.PrefixCache.Load = sim.WriteThrough, sim.LoadAlways
			c.spec.PrefixCache.Overlap = sim.OverlapLayers
			_, o, _ := c.lives(t, nil)
			expect(t, kind, o.requests[2].HitDRAM, want)
		}
	}
}

// Of prompts that are said to be cached, DRAM has the first blocks, each prompt's own: of eight
// tokens four are loaded in 7 ms while no other request runs, and four computed in 10 + 2 x 4 ms. A
// chunk of the four computed tokens is saved, none of the loaded ones.
func TestPrefixesThatAreSaidToBeInDRAM(t *testing.T) {
	for at, kind := range []string{sim.PrefixVLLM, sim.PrefixVLLM, sim.PrefixTree, sim.PrefixTree} {
		overlap, first := sim.OverlapRequest, 25
		if at%2 == 1 {
			overlap, first = sim.OverlapNone, 18
		}
		c := cachedByHand(8, sim.Arrival{Prompt: 8, Output: 2, Cached: 6},
			sim.Arrival{At: 100 * ms, Prompt: 8, Output: 2, Cached: 6})
		c.spec.PrefixCache.Mode = kind
		c.spec.PrefixCache.Chunk, c.spec.PrefixCache.DRAMGiB, c.spec.PrefixCache.Eviction = 4, 1,
			memory.LRU
		c.spec.PrefixCache.Write, c.spec.PrefixCache.Load = sim.WriteThrough, sim.LoadAlways
		c.spec.PrefixCache.Overlap = overlap
		got, o, _ := c.lives(t, nil)
		for i, r := range o.requests {
			expect(t, overlap, [3]int{r.Hit, r.HitDRAM, r.HitSSD}, [3]int{4, 4, 0})
			expect(t, overlap+" first token", got[i+1].First-100*i, first)
		}
		stats := o.metrics.Summary().PrefixCache
		token := c.model.Geometry(4).BlockBytes / 4 * 2
		expect(t, overlap+" loaded", stats.DRAM.LoadedBytes, 2*4*token)
		expect(t, overlap+" saved", stats.DRAM.WrittenBytes, 2*4*token)
	}
}
