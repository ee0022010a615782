package sim_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// The step after a request's end gets its blocks in both layers.
// By hand: prompts of 40 and 42 tokens in blocks of 4, outputs of 12 and 8: the
// second ends at 49 tokens, with 13 blocks.
func TestStepsSayWhatIsGivenBack(t *testing.T) {
	c := byHand(200, sim.Arrival{Prompt: 40, Output: 12}, sim.Arrival{Prompt: 42, Output: 8})
	c.spec.Offload.On, c.spec.Selection.On = true, true
	freed := int64(0)
	_, o, _ := c.lives(t, nil)
	for i, s := range o.spy.ended {
		if freed += s.FreedBlocks; s.FreedBlocks > 0 &&
			o.log.steps[i].Decodes >= o.log.steps[i-1].Decodes {
			t.Errorf("step %d: blocks of nobody are given back", i)
		}
	}
	if freed != 13*2 { // of the last request no step hears
		t.Errorf("%d blocks given back, want 26", freed)
	}

	c = byHand(200, sim.Arrival{Prompt: 40, Output: 12}, sim.Arrival{Prompt: 40, Output: 8})
	c.spec.Selection.On = true
	_, o, _ = c.lives(t, nil)
	for i, s := range o.spy.ended {
		if s.FreedBlocks != 0 {
			t.Errorf("step %d without offloading: %+v", i, s.Step)
		}
	}
}
