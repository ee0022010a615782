package sim_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// Two prompts of 16 tokens, four blocks of two layers each, are prefilled together in 16 blocks. A
// decode attends to all, and opens a fifth block in each layer: its working set is 10 blocks. Of 21
// blocks, one is left for rounding: both fit. Of 20 they do not, though they would without the
// blocks that they open.
func TestWorkingSetHasTheBlockThatOpens(t *testing.T) {
	for blocks, want := range map[int64]int{20: 1, 21: 2} {
		c := byHand(0, sim.Arrival{Prompt: 16, Output: 3}, sim.Arrival{Prompt: 16, Output: 3})
		c.hbm = blocks * tinyBlock()
		c.spec.Offload.On, c.spec.Offload.BatchControl = true, true
		c.spec.MaxTokens, c.spec.Prefill.ChunkTokens = 32, 32
		_, o, _ := c.lives(t, nil)
		prefills, most := o.steps[0].Prefills, 0
		for _, s := range o.steps {
			most = max(most, s.Decodes)
		}
		if prefills != 2 || most != want {
			t.Errorf("of %d blocks: %d prefills in the first step, up to %d decodes in one, want 2 and %d",
				blocks, prefills, most, want)
		}
	}
}

// A layer-segmented prefill of 40 tokens that hits 16 holds: the six blocks of a layer that it
// computes, as many that are being saved, the four blocks of the prefix of this layer and of the
// next, which is loading, an open block in both layers, and for each of 24 tokens a hidden state of
// 64 values and queries of two heads, 16 values each, of two bytes. Its ten blocks have metadata in
// both layers.
func TestBuffersOfALayerSegmentedPrefillWithAPrefix(t *testing.T) {
	block, meta := tinyBlock(), byHand(1).model.Geometry(4).MetaBytes
	for hit, want := range map[int]int64{
		0:  (10+10+2)*block + 40*(64+2*16)*2 + 20*meta,
		16: (6+6+2*4+2)*block + 24*(64+2*16)*2 + 20*meta,
	} {
		c := offloaded("layer")
		c.arrivals[0].Cached = hit
		reserved := int64(-1)
		c.lives(t, func(o *outcome) error {
			if o.server.Now() == 0 {
				reserved = o.server.Left().Reserved
			}
			return nil
		})
		if reserved != want {
			t.Errorf("with %d tokens hit %d bytes are reserved, want %d", hit, reserved, want)
		}
	}
}

// A request of 16 tokens, four blocks of each of two layers, needs them all at its prefill, and one
// for rounding: in nine blocks it is served, in a byte less it is refused.
func TestARequestThatJustFits(t *testing.T) {
	for less, want := range map[int64]int{0: 1, 1: 0} {
		c := byHand(0, sim.Arrival{Prompt: 15, Output: 1})
		c.hbm = 9*tinyBlock() - less
		c.spec.Offload.On, c.spec.MaxTokens, c.spec.Prefill.ChunkTokens = true, 16, 16
		_, o, _ := c.lives(t, nil)
		if got := o.metrics.Summary().Completed; got != want {
			t.Errorf("in nine blocks less %d bytes %d requests are served, want %d", less, got, want)
		}
	}
}

// Three prompts of three tokens hold an open block in each of two layers, six in all, and one is
// for rounding. A decode has a block of one layer in HBM at once: of eight blocks it just fits; of
// seven it does not, and another request is preempted.
func TestALayerThatJustFits(t *testing.T) {
	for blocks, want := range map[int64]bool{8: false, 7: true} {
		one := sim.Arrival{Prompt: 3, Output: 2}
		c := byHand(0, one, one, one)
		c.hbm = blocks * tinyBlock()
		c.spec.Offload.On, c.spec.Offload.BatchControl, c.spec.MaxTokens = true, true, 16
		_, o, _ := c.lives(t, nil)
		if s := o.metrics.Summary(); o.steps[0].Prefills != 3 || s.Completed != 3 ||
			(s.Preempted > 0) != want {
			t.Errorf("of %d blocks: %d prefills in the first step, %d requests served, %d preempted",
				blocks, o.steps[0].Prefills, s.Completed, s.Preempted)
		}
	}
}
