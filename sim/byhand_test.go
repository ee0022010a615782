package sim_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

const ms = des.Millisecond

// metronome is a device for working by hand: a step takes 10 ms and 1 ms for
// each prefill token in each layer; what a step saves lands 5 ms after its end.
type metronome struct {
	elapsed des.Time
	saves   bool
	loads   []int64 // by step
	late    []bool  // likewise
	index   int64
}

func (d *metronome) Begin(s *sim.Step) error {
	d.elapsed, d.saves, d.index = 10*ms, false, s.Index
	d.loads, d.late = append(d.loads, 0), append(d.late, false)
	return nil
}

func (d *metronome) Score(int, *sim.Work) error { return nil }

func (d *metronome) Move(m *kv.Moves) error {
	d.loads[len(d.loads)-1] += m.Loads
	d.late[len(d.late)-1] = d.late[len(d.late)-1] || m.SavesInFlight
	if m.SavesInFlight && m.Loads == 0 {
		return errors.New("a layer that loads nothing waits for no save")
	}
	d.saves = d.saves || m.Saves > 0
	return nil
}

func (d *metronome) Compute(_ int, w *sim.Work) error {
	for _, p := range w.Prefill {
		d.elapsed += des.Time(p.Query) * ms
	}
	return nil
}

func (d *metronome) Finish() (metrics.Timing, error) {
	t := metrics.Timing{Elapsed: d.elapsed, Phases: metrics.Phases{Linears: d.elapsed},
		SavedSteps: d.index + 1}
	if d.saves {
		t.SavesDone = d.elapsed + 5*ms
	}
	return t, nil
}

func (d *metronome) Drain() (des.Time, error) { return d.elapsed + 5*ms, nil }

// byHand returns a scenario of two layers with one KV head each, blocks of four
// tokens, eight tokens an iteration and memory for the given number of blocks.
func byHand(blocks int64, arrivals ...sim.Arrival) *scenario {
	c := &scenario{model: tiny(2, 1), gpu: "a100-40gb", seed: 1, arrivals: arrivals}
	c.spec = sim.Spec{
		Selection: sim.SelectionSpec{Policy: "arkvale", BudgetTokens: 20, SinkBlocks: 1,
			RecentBlocks: 1}, BlockTokens: 4,
		Offload: sim.OffloadSpec{Load: "memcpy", Save: "memcpy", Eviction: "lru", Pool: "unified",
			WorkingSetSteps: 12}, Utilisation: 0.9, DRAMGiB: 1, Scheduler: "vllm", MaxRequests: 8,
		MaxTokens:  8,
		Prefill:    sim.PrefillSpec{Split: "chunked", ChunkTokens: 8, OverLength: "truncate"},
		Simulation: sim.SimulationSpec{Heads: "full", Groups: 1},
	}
	c.hbm = blocks * c.model.Geometry(4).BlockBytes * 2
	return c
}

// life is a request's times in milliseconds.
type life struct {
	Scheduled, First, Last, Preemptions int
}

func (c *scenario) lives(t *testing.T, look func(*outcome) error) (map[int]life, *outcome,
	*metronome) {
	t.Helper()
	d := &metronome{}
	o := &outcome{spy: &spy{Device: d}}
	o.server = c.server(t, o.spy)
	o.run(t, c, func() error {
		if look != nil {
			if err := look(o); err != nil {
				return err
			}
		}
		return o.server.Check()
	})
	got := map[int]life{}
	for _, r := range o.requests {
		got[r.ID] = life{int(r.Scheduled / ms), int(r.FirstToken / ms), int(r.LastToken / ms),
			r.Preemptions}
	}
	return got, o, d
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A chunk of 8 tokens takes 10 + 2 x 8 = 26 ms:
//
//	 0  request 1, tokens 0 to 8
//	26  request 1, tokens 8 to 12; request 2, which came at 5, tokens 0 to 4
//	52  both decode; request 2 ends at 62
//	62  request 1 decodes and ends at 72
func TestChunkedPrefillByHand(t *testing.T) {
	c := byHand(100, sim.Arrival{Prompt: 12, Output: 3}, sim.Arrival{At: 5 * ms, Prompt: 4, Output: 2})
	got, o, _ := c.lives(t, nil)
	expect(t, "lives", got, map[int]life{1: {0, 52, 72, 0}, 2: {26, 52, 62, 0}})
	expect(t, "gaps", o.gaps, []des.Time{10 * ms, 10 * ms, 10 * ms})
	sum := o.metrics.Summary()
	expect(t, "mean TTFT", sum.TTFT.Mean, (0.052+0.047)/2)
	expect(t, "mean scheduling delay", sum.QueueDelay.Mean, 0.021/2)
	expect(t, "mean TBT", sum.TBT.Mean, 0.010)
	expect(t, "mean batch", sum.BatchMean, 6.0/4)
	expect(t, "throughput", sum.ThroughputTokS, 5/0.072)
}

// Two prompts of four blocks, in chunks of two blocks, with HBM for seven: both
// first chunks fit, both prompts do not. vLLM 0.5 to 0.6 allocates a prompt when
// it admits it, so request 2 waits until request 1's KV may leave HBM; V1
// allocates chunk by chunk and starts it at once, and so does batch control, by
// whose working sets a prefill holds the chunks so far.
func TestPromptAllocationByHand(t *testing.T) {
	for _, x := range []struct {
		base              string
		control, together bool
	}{{"vllm", false, false}, {"vllm-v1", false, true}, {"vllm-v1-whole", false, true},
		{"vllm", true, true}} {
		c := byHand(7, sim.Arrival{Prompt: 16, Output: 2}, sim.Arrival{Prompt: 16, Output: 2})
		c.spec.Scheduler, c.spec.Offload.On, c.spec.Selection.On, c.spec.MaxTokens = x.base, true, true,
			16
		c.spec.Offload.BatchControl = x.control
		got, _, _ := c.lives(t, nil)
		if at := got[2].Scheduled; (at == 0) != x.together {
			t.Errorf("%+v: request 2 starts at %d ms", x, at)
		}
		if got[2].Last == 0 {
			t.Errorf("%+v: request 2 never ends", x)
		}
	}
}

// Two prompts of one block, with memory for three:
//
//	 0  both prefill, 8 tokens in two layers: 26 ms
//	26  request 1 takes the last block and preempts request 2; it decodes alone until 66
//	66  request 2, its prompt and the token that it had emitted: 20 ms, of whose five tokens four
//	    had KV before
//	86  request 2 decodes until 116
func TestWhatAPreemptionCosts(t *testing.T) {
	c := byHand(3, sim.Arrival{Prompt: 4, Output: 5}, sim.Arrival{Prompt: 4, Output: 5})
	got, o, _ := c.lives(t, nil)
	expect(t, "lives", got, map[int]life{1: {0, 26, 66, 0}, 2: {0, 26, 116, 1}})
	sum := o.metrics.Summary()
	expect(t, "preemptions", sum.Preempted, 1)
	expect(t, "tokens computed again", sum.RecomputedTokens, int64(4))
	expect(t, "their share of the time, in ppm", int(1e6*sum.RecomputedShare), 137931) // 16 ms of 116
	warned := false
	for _, w := range sum.Warnings {
		warned = warned || strings.HasPrefix(w.Text, "preemptions: 1, 0.5 a request; 14 % of the steps' "+
			"time computes lost KV again: KV of 1 of 2 requests fits; ") &&
			strings.HasSuffix(w.Text, "or keep lost KV with prefix_cache.mode = \"vllm\"")
	}
	expect(t, "is warned of", warned, true)
	roomy := byHand(4, c.arrivals...)
	_, o, _ = roomy.lives(t, nil)
	sum = o.metrics.Summary()
	expect(t, "preemptions with room", sum.Preempted+int(sum.RecomputedTokens), 0)
}

// With 12 token-layers an iteration:
//
//	 0  request 1, layer 0, 12 tokens: 22 ms
//	22  request 1, layer 1; nothing is left for request 2
//	44  request 1 decodes; request 2, both layers of 4 tokens: 18 ms
//	62  both decode and end at 72
func TestLayerSegmentedPrefillByHand(t *testing.T) {
	c := byHand(100, sim.Arrival{Prompt: 12, Output: 3}, sim.Arrival{At: 5 * ms, Prompt: 4,
		Output: 2})
	c.spec.Prefill.Split, c.spec.Prefill.MaxInject = "layer", 12
	got, o, _ := c.lives(t, nil)
	expect(t, "lives", got, map[int]life{1: {0, 44, 72, 0}, 2: {44, 62, 72, 0}})
	expect(t, "gaps", o.gaps, []des.Time{18 * ms, 10 * ms, 10 * ms})
}

// Blocks of a layer-segmented prefill leave HBM as they are written. Its first decode
// wants them back before the last are saved, 5 ms after the prefill's end; its second
// does not. Chunks keep theirs until they are saved.
func TestLateLoadsByHand(t *testing.T) {
	for prefill, want := range map[string][]bool{"layer": {false, false, true, false},
		"chunked": {false, false, false, false}} {
		c := byHand(100, sim.Arrival{Prompt: 12, Output: 3})
		c.spec.Prefill.Split, c.spec.Prefill.MaxInject, c.spec.Offload.On,
			c.spec.Selection.On = prefill, 12, true, true
		_, _, d := c.lives(t, nil)
		expect(t, prefill, d.late, want)
	}
}

// Four blocks of HBM:
//
//	 0  request 1, 7 tokens, two blocks: 24 ms
//	24  request 1 decodes within its blocks; request 2, 6 tokens, two blocks: 22 ms
//	46  request 1 needs a third block: request 2 is preempted and cannot return
//	66  request 1 has ended; request 2 prefills its prompt and its token: 24 ms
//	90  request 2 decodes twice and ends at 110
func TestPreemptionByHand(t *testing.T) {
	c := byHand(4, sim.Arrival{Prompt: 7, Output: 4}, sim.Arrival{At: 5 * ms, Prompt: 6, Output: 4})
	c.spec.MaxTokens, c.spec.Prefill.ChunkTokens = 100, 100
	got, o, _ := c.lives(t, nil)
	expect(t, "lives", got, map[int]life{1: {0, 24, 66, 0}, 2: {24, 46, 110, 1}})
	expect(t, "gaps", o.gaps, []des.Time{22 * ms, 10 * ms, 10 * ms, 44 * ms, 10 * ms, 10 * ms})
	expect(t, "preemptions", o.metrics.Summary().Preempted, 1)
}

// At one moment saves complete, then requests arrive, then the step ends: a request
// that arrives as a step ends is in the next one.
func TestArrivalAtTheEndOfAStep(t *testing.T) {
	c := byHand(100, sim.Arrival{Prompt: 4, Output: 3}, sim.Arrival{At: 18 * ms, Prompt: 4, Output: 1})
	got, _, _ := c.lives(t, nil)
	expect(t, "lives", got, map[int]life{1: {0, 18, 46, 0}, 2: {18, 36, 36, 0}})
}

func TestRejections(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(*scenario)
		prompt, output int
		want           string // of the reason; empty when served
		served         int    // prompt tokens
	}{
		"fits":      {func(*scenario) {}, 40, 4, "", 40},
		"truncated": {func(*scenario) {}, 1000, 10, "", 390},
		"truncated to a knob": {func(c *scenario) { c.spec.Prefill.MaxPromptTokens = 30 }, 1000, 10, "",
			30},
		"a knob beyond": {func(c *scenario) { c.spec.Prefill.MaxPromptTokens = 5000 }, 1000, 10,
			"", 390},
		"over length": {func(c *scenario) { c.spec.Prefill.OverLength = "reject" }, 391, 10,
			"prompt of 391 tokens exceeds the maximum of 390", 0},
		"just not over length": {func(c *scenario) { c.spec.Prefill.OverLength = "reject" }, 390, 10,
			"", 390},
		"output alone": {func(*scenario) {}, 1, 400, "output of 400 tokens", 0},
		"no prompt":    {func(*scenario) {}, 0, 4, "at least 1", 0},
		"no output":    {func(*scenario) {}, 4, 0, "at least 1", 0},
		"HBM": {func(c *scenario) { c.hbm /= 10 }, 40, 1, "exceeds HBM, which holds " +
			"40 tokens", 0},
		"just HBM": {func(c *scenario) { c.hbm /= 10 }, 39, 1, "", 39},
		"watermark": {func(c *scenario) { c.hbm, c.spec.Watermark = c.hbm/10, 0.1 }, 39, 1,
			"of which 10 % stay free", 0},
		"DRAM": {func(c *scenario) {
			c.spec.Offload.On, c.spec.DRAMGiB = true, float64(c.hbm/10)/(1<<30)
		}, 40, 1, "exceeds DRAM, which holds 40 tokens", 0},
		"truncated and too large": {func(c *scenario) {
			c.hbm, c.spec.Prefill.MaxPromptTokens = c.hbm/10, 60
		}, 1000, 1, "KV of 61 tokens exceeds HBM", 60},
		"alone": {func(c *scenario) { c.spec.Offload.On, c.hbm = true, c.hbm/10 }, 40, 1,
			"alone it needs", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := byHand(100, sim.Arrival{Prompt: c.prompt, Output: c.output, Set: "a"},
				sim.Arrival{At: 60 * des.Second, Prompt: 1, Output: 1})
			c.change(s)
			_, o, _ := s.lives(t, nil)
			if len(o.requests) != 2 {
				t.Fatalf("%d records", len(o.requests))
			}
			r := o.requests[0]
			if (r.Rejected == "") != (c.want == "") || !strings.Contains(r.Rejected, c.want) {
				t.Errorf("rejected: %q, want %q", r.Rejected, c.want)
			}
			if c.want == "" && r.Prompt != c.served {
				t.Errorf("served %d prompt tokens, want %d", r.Prompt, c.served)
			}
			sum, cut := o.metrics.Summary(), 0
			if c.want == "" && c.served < c.prompt {
				cut = 1
			}
			if r.Given != c.prompt || sum.Truncated != cut || (cut > 0) != slices.Contains(
				warn.Texts(sum.Warnings),
				fmt.Sprintf("1 of 2 prompts truncated to %d tokens (longest 1000)", c.served)) {
				t.Errorf("%d tokens given, %d truncated: %q", r.Given, sum.Truncated, sum.Warnings)
			}
			refused := c.prompt
			if c.served > 0 {
				refused = c.served
			}
			if c.want != "" && (r.Prompt != refused || r.Output != c.output || r.Set != "a") {
				t.Errorf("rejected record is %+v", r)
			}
		})
	}
}
