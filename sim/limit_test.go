package sim_test

import (
	"testing"

	"sparseserve/sim"
)

// A sample of three of 2 layers x 2 heads has one group in the first layer and
// two in the second, whose pools have 24 slots each. The five blocks a group of
// request 2 fit beside what request 1 holds on average (1.5 x 8 + 1.5 x 5 slots a
// pool), but not in the second pool (2 x 8 + 2 x 5). So request 2 waits:
//
//	  0  request 1, tokens 0 to 32, in 10 + 2 x 32 = 74 ms
//	 74  nothing can run: 8 blocks a group are on their way to DRAM
//	 79  they have landed; request 2, tokens 0 to 20, in 50 ms, with its only token
//	129  request 1 decodes and ends at 139
func TestHeldBlocksFillTheFullestPool(t *testing.T) {
	c := byHand(32, sim.Arrival{Prompt: 32, Output: 2}, sim.Arrival{Prompt: 20, Output: 1})
	c.model = tiny(2, 2)
	c.spec.Offload, c.spec.Pool, c.spec.Prefill = true, "per-layer", "plain"
	c.spec.Heads, c.spec.SampleGroups = "sampled", 3
	got, _, _ := c.lives(t, nil)
	expect(t, "lives", got, map[int]life{1: {0, 74, 139, 0}, 2: {79, 129, 129, 0}})
}
