package kv_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/kv"
)

// One head of one layer and 4 HBM slots for a request of 6 blocks: a decode step selects blocks,
// and Fill loads the blocks that are not in HBM.
func ExampleCache() {
	geo := kv.Geometry{Layers: 1, KVHeads: 1, BlockTokens: 16, BlockBytes: 1 << 14}
	c, err := kv.NewCache(kv.Config{
		Geometry: geo, Sample: kv.FullSample(geo), HBMBytes: 4 * geo.BlockBytes,
		Eviction: kv.LRU, Window: 2,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := c.Open(200)
	c.Extend(s, 96)
	if err := c.Segmented(s); err != nil { // a layer-segmented prefill leaves its blocks in DRAM
		fmt.Println(err)
		return
	}
	for _, next := range [][]uint16{{1, 3}, {1, 2}, {0, 2}} {
		c.BeginStep([]*kv.Seq{s})
		// Block 0 is a sink, block 5 the window; candidate i is block 1+i.
		c.Access(s, 0, &kv.Selection{Sinks: 1, Tail: 5, Picks: kv.Picks{Next: next, Used: len(next)}})
		loads, err := c.Fill(c.Layers()[0])
		fmt.Println(loads, err)
	}
	fmt.Println(c.Stats().Selected, c.Stats().Loaded, c.Stats().Evicted)
	// Output:
	// 4 <nil>
	// 1 <nil>
	// 1 <nil>
	// 12 6 2
}
