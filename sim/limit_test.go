package sim_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// A sample of three of 2 layers x 2 heads has one group in the first layer and
// two in the second, whose pools have 24 slots each. The five blocks a group of
// request 2 fit with what request 1 holds on average (1.5 x 8 + 1.5 x 5 slots a
// pool), but not in the second pool (2 x 8 + 2 x 5). So request 2 waits:
//
//	  0  request 1, tokens 0 to 32, in 10 + 2 x 32 = 74 ms
//	 74  nothing can run: 8 blocks a group are on their way to DRAM
//	 79  they are saved; request 2, tokens 0 to 20, in 50 ms, with its only token
//	129  request 1 decodes and ends at 139
func TestHeldBlocksFillTheFullestPool(t *testing.T) {
	c := byHand(32, sim.Arrival{Prompt: 32, Output: 2}, sim.Arrival{Prompt: 20, Output: 1})
	c.model = tiny(2, 2)
	c.spec.Offload.On, c.spec.Offload.Pool, c.spec.Prefill.Split = true, "per-layer", "plain"
	c.spec.Simulation.Heads, c.spec.Simulation.Groups = "sampled", 3
	got, _, _ := c.lives(t, nil)
	expect(t, "lives", got, map[int]life{1: {0, 74, 139, 0}, 2: {79, 129, 129, 0}})
}

// A request runs when the blocks of one iteration of progressive attention fit
// (PSA §4), however many it attends to. Three requests of ten full blocks a head
// and one open, with room for 36 blocks: of full attention a layer holds 11 at
// once, so two decode together, and of PSA, which attends to all of them too, the
// open block and a microbatch, so all three, until a microbatch is all there is.
func TestOneIterationMustFit(t *testing.T) {
	together := func(set func(*sim.Spec)) (most int) {
		a := sim.Arrival{Prompt: 40, Output: 12}
		c := byHand(18, a, a, a)
		c.spec.Offload.On, c.spec.Selection.On, c.spec.Prefill.Split, c.spec.MaxTokens = true, true,
			"chunked", 40
		c.spec.Selection.Policy, c.spec.Selection.SinkBlocks, c.spec.Selection.Epsilon,
			c.spec.Selection.Stop = "psa", 0, 1-1e-15, "layer"
		c.spec.Scheduler, c.spec.Prefill.ChunkTokens = "vllm-v1", 40
		if set(&c.spec); c.spec.Sparse() {
			c.hbm += 3 * 26 * c.model.Geometry(4).MetaBytes
		}
		_, o, _ := c.lives(t, nil)
		for _, s := range o.steps {
			most = max(most, s.Decodes)
		}
		return most
	}
	for _, x := range []struct {
		name string
		set  func(*sim.Spec)
		want int
	}{
		{"full attention", func(s *sim.Spec) { s.Selection.On = false }, 2},
		{"two blocks at a time", func(s *sim.Spec) { s.Selection.Microbatch = 2 }, 3},
		{"two, and two being loaded", func(s *sim.Spec) {
			s.Selection.Microbatch,
				s.Selection.Pipelined = 2, true
		}, 3},
		{"all blocks at a time", func(s *sim.Spec) { s.Selection.Microbatch = 16 }, 2},
		{"five, and five being loaded", func(s *sim.Spec) {
			s.Selection.Microbatch,
				s.Selection.Pipelined = 5, true
		}, 2},
	} {
		if got := together(x.set); got != x.want {
			t.Errorf("%s: %d requests decode together, want %d", x.name, got, x.want)
		}
	}
}
