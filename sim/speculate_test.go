package sim_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// speculate has the scenario's model draft tokens.
func (c *scenario) speculate(k int, acceptance float64) {
	c.model.MTPLayers, c.model.Drafts = 1, k > 0
	c.spec.Speculation.Tokens, c.spec.Speculation.Acceptance = k, acceptance
	c.spec.MaxTokens = max(c.spec.MaxTokens, k+1)
	if c.spec.Prefill.Split != "plain" {
		c.spec.Prefill.Split = "chunked"
	}
}

// serve runs the scenario to its end and holds every law after each event.
func (c *scenario) serve(t fatal) (*log, *sim.Server, *metrics.Run) {
	s, rec := c.server(t, c.modelled(t, profile(t, c.gpu))), &log{}
	m, err := s.Drive(&list{arrivals: c.arrivals}, rec, s.Check)
	if err != nil {
		t.Fatal(err)
	}
	return rec, s, m
}

// Law 4 with speculation: whatever is drafted and accepted, every request gets its tokens, no step
// gives more than drafts + 1 for each decode, and all memory returns; the same seed gives the same
// run.
func TestLaw4Speculation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawDense(t)
		k := rapid.IntRange(1, 5).Draw(t, "drafts")
		if c.model.WindowTokens > 0 {
			t.Skip("refused")
		}
		c.speculate(k, rapid.SampledFrom([]float64{0, 0.3, 0.9}).Draw(t, "acceptance"))
		rec, s, _ := c.serve(t)
		given, wanted := 0, 0
		for i := range rec.steps {
			r := &rec.steps[i]
			if given += r.Tokens; r.Tokens > r.Decodes*(k+1)+r.Prefills {
				t.Fatalf("step %d gives %d tokens of %d decodes", r.Index, r.Tokens, r.Decodes)
			}
		}
		for i := range rec.requests {
			if r := &rec.requests[i]; r.Rejected == "" {
				wanted += r.Output
			}
		}
		if given != wanted {
			t.Fatalf("steps give %d tokens, requests want %d", given, wanted)
		}
		if left := s.Left(); left != (sim.Holdings{}) {
			t.Fatalf("left: %+v", left)
		}
		if again, _, _ := c.serve(t); !reflect.DeepEqual(again, rec) {
			t.Fatal("another run of the same seed differs")
		}
	})
}

// alone is one request of a long output.
func alone(output int) *scenario {
	c := &scenario{gpu: "h100-80gb", model: tiny(4, 2), hbm: 1 << 30, seed: 3,
		arrivals: []sim.Arrival{{Prompt: 100, Output: output}}}
	c.model.MaxContext = 1 << 20
	c.spec = sim.Spec{Selection: sim.SelectionSpec{}, BlockTokens: 16, Scheduler: "vllm-v1",
		Prefill:   sim.PrefillSpec{Split: "chunked", ChunkTokens: 512, OverLength: "reject"},
		MaxTokens: 512, MaxRequests: 4, Simulation: sim.SimulationSpec{Heads: "full"},
		PrefixCache: sim.PrefixCacheSpec{Mode: sim.PrefixOff}}
	return c
}

// A step gives (1 - a^(k+1)) / (1 - a) tokens of a decode on average, and with a = 0 one; what it
// costs does not depend on how many that are.
func TestSpeculationGivesTheGeometricMean(t *testing.T) {
	const output = 20001
	for _, k := range []int{1, 2, 4} {
		for _, a := range []float64{0, 0.5, 0.85} {
			c := alone(output)
			c.speculate(k, a)
			rec, _, _ := c.serve(t)
			decodes := float64(len(rec.steps) - 1)
			got, want := (output-1)/decodes, (1-math.Pow(a, float64(k+1)))/(1-a)
			// a step's tokens are within 1 and k + 1
			if sigma := float64(k) / 2 / math.Sqrt(decodes); math.Abs(got-want) > 4*sigma && a > 0 ||
				a == 0 && got != 1 {
				t.Errorf("k = %d, a = %g: %.4f tokens a step, want %.4f", k, a, got, want)
			}
		}
	}
}

// Drafts of which none is accepted make every step longer and give the tokens of none; tokens of
// one step come together.
func TestRefusedDraftsCost(t *testing.T) {
	run := func(k int, a float64) *log {
		c := alone(200)
		c.speculate(k, a)
		rec, _, _ := c.serve(t)
		return rec
	}
	without, refused, accepted := run(0, 0), run(2, 0), run(2, 0.9)
	if len(refused.steps) != len(without.steps) {
		t.Fatalf("%d steps with drafts that are refused, %d without", len(refused.steps),
			len(without.steps))
	}
	for i := range refused.steps {
		with, none := &refused.steps[i], &without.steps[i]
		if with.Tokens != none.Tokens || with.Timing.Elapsed <= none.Timing.Elapsed {
			t.Fatalf("step %d: %d tokens in %v with drafts, %d in %v without", i, with.Tokens,
				with.Timing.Elapsed, none.Tokens, none.Timing.Elapsed)
		}
	}
	together := 0
	for _, gap := range accepted.gaps {
		if gap == 0 {
			together++
		}
	}
	if want := 200 - len(accepted.steps); together != want || want == 0 {
		t.Errorf("%d tokens come with another, want %d", together, want)
	}
}

// A device that drafts nothing, and systems whose drafts are not modelled, are refused.
func TestSpeculationIsRefused(t *testing.T) {
	c := alone(10)
	c.speculate(1, 0.5)
	device := c.modelled(t, profile(t, c.gpu))
	if _, err := sim.NewServer(c.config(t, struct{ sim.Device }{device})); err == nil ||
		!strings.Contains(err.Error(), "drafts no tokens") {
		t.Error("a device that drafts nothing: ", err)
	}
	for want, change := range map[string]func(*sim.Spec){
		"prefill.split":    func(s *sim.Spec) { s.Prefill.Split = "layer" },
		"max_tokens":       func(s *sim.Spec) { s.MaxTokens = 1 },
		"offload.on":       func(s *sim.Spec) { s.Offload.On = true },
		"selection.policy": func(s *sim.Spec) { s.Selection.On, s.Selection.Policy = true, "quest" },
	} {
		s := c.spec
		if change(&s); !strings.Contains(s.NoSpeculation(), want) {
			t.Errorf("%s: %q", want, s.NoSpeculation())
		}
	}
}

// A step that drafts and verifies allocates nothing.
func TestSpeculationAllocatesNothing(t *testing.T) {
	c := alone(50000)
	c.speculate(3, 0.7)
	s := c.server(t, c.modelled(t, profile(t, c.gpu)))
	if err := s.Begin(&list{arrivals: c.arrivals}, quiet{}); err != nil {
		t.Fatal(err)
	}
	step := func() {
		if more, err := s.Advance(); err != nil || !more {
			t.Fatal(more, err)
		}
	}
	for range 100 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}
