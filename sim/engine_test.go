package sim_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// As TestChunkedPrefillByHand, planned a step ahead: request 2, which comes at 5, finds the
// step that begins at 26 planned already.
//
//	 0  request 1, tokens 0 to 8
//	26  request 1, tokens 8 to 12: 18 ms
//	44  request 1 decodes; request 2, tokens 0 to 4: 18 ms
//	62  both decode and end at 72
func TestPlanningAheadByHand(t *testing.T) {
	c := byHand(100, sim.Arrival{Prompt: 12, Output: 3}, sim.Arrival{At: 5 * ms, Prompt: 4, Output: 2})
	c.engine.PlanAhead = true
	got, _, _ := c.lives(t, nil)
	expect(t, "lives", got, map[int]life{1: {0, 44, 72, 0}, 2: {44, 62, 72, 0}})
}

// Nothing was planned after a request's last step, so one that comes meanwhile follows it.
func TestPlanningAheadOfNothingByHand(t *testing.T) {
	c := byHand(100, sim.Arrival{Prompt: 4, Output: 1}, sim.Arrival{At: 5 * ms, Prompt: 4, Output: 1})
	c.engine.PlanAhead = true
	got, _, _ := c.lives(t, nil)
	expect(t, "lives", got, map[int]life{1: {0, 18, 18, 0}, 2: {18, 36, 36, 0}})
}

// The front end holds a request for 3 ms and its tokens for 2.
func TestFrontEndByHand(t *testing.T) {
	c := byHand(100, sim.Arrival{Prompt: 12, Output: 3}, sim.Arrival{At: 5 * ms, Prompt: 4, Output: 2})
	c.engine.Request, c.engine.Reply = 3*ms, 2*ms
	got, _, _ := c.lives(t, nil)
	expect(t, "lives", got, map[int]life{1: {3, 57, 77, 0}, 2: {29, 57, 67, 0}})
}

// One thread tokenises 12 tokens in 12 ms, then the 4 of the request that came at 5.
func TestTokeniserByHand(t *testing.T) {
	c := byHand(100, sim.Arrival{Prompt: 12, Output: 3}, sim.Arrival{At: 5 * ms, Prompt: 4, Output: 2},
		sim.Arrival{At: 100 * ms, Prompt: 4, Output: 1})
	c.engine.Token = ms
	got, _, _ := c.lives(t, nil)
	expect(t, "lives", got, map[int]life{1: {12, 64, 84, 0}, 2: {38, 64, 74, 0},
		3: {104, 122, 122, 0}})
}

// Of 12 tokens in blocks of four, 11 could come from the prefix cache and eight do: the
// last four are computed in 10 + 2 x 4 ms.
func TestPrefixHitByHand(t *testing.T) {
	for cached, first := range map[int]int{0: 26 + 18, 7: 26, 8: 18, 12: 18} {
		c := byHand(100, sim.Arrival{Prompt: 12, Output: 3, Cached: cached})
		got, _, _ := c.lives(t, nil)
		expect(t, "lives", got, map[int]life{1: {0, first, first + 20, 0}})
	}
}

// hit is how many tokens of a served prompt came from the prefix cache.
func (c *scenario) hit(r metrics.Request) int {
	if c.spec.CachesPrefixes() {
		return r.Hit
	}
	cached := min(c.arrival(&r).Cached, r.Prompt-1)
	return cached - cached%c.spec.BlockTokens
}
