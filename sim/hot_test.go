package sim_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// drawHot draws a run with hot buffers, with and without a prefix cache and drafts.
func drawHot(t *rapid.T) *scenario {
	c := drawScenario(t)
	n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	s := &c.spec
	s.Selection.On, s.Selection.Policy, s.Offload.On, s.Selection.DenseLayers = true, "indexer", true,
		0
	s.PrefixCache.Mode, s.PrefixCache.Attend, s.Offload.BatchControl = sim.PrefixOff, sim.PrefixDense,
		false
	s.Prefill.Split = rapid.SampledFrom([]string{"plain", "chunked"}).Draw(t, "hot prefill")
	s.Offload.Load, s.Selection.SinkBlocks, s.Selection.RecentBlocks = cost.LoadSwap, 0, 1
	s.Selection.BudgetTokens = s.BlockTokens * rapid.SampledFrom([]int{2, 3, 7}).Draw(t, "hot budget")
	s.Offload.HotBuffer = (s.Selection.BudgetTokens/s.BlockTokens + n("buffer", 0, 8)) * s.BlockTokens
	s.Offload.HotRelease = rapid.SampledFrom(sim.HotReleases()).Draw(t, "release")
	s.Offload.HostPoolRatio = pick2(t, "ratio", 0, 0.5, 4)
	cached := rapid.Bool().Draw(t, "hot prefix cache")
	for i := range c.arrivals {
		a := &c.arrivals[i]
		if a.Content = nil; cached {
			a.Cached, a.Content = 0, drawContent(t, a)
		}
	}
	if cached {
		s.PrefixCache.Mode = sim.PrefixVLLM
	}
	if s.PrefixCache.DRAMGiB, s.PrefixCache.SSDGiB = 0, 0; rapid.Bool().Draw(t, "hot drafts") {
		c.model.MTPLayers, c.model.Drafts = 1, true
		s.Speculation.Tokens = n("drafts", 1, 4)
		s.Speculation.Acceptance = pick2(t, "acceptance", 0, 0.3, 0.9)
		s.MaxTokens = max(s.MaxTokens, 1+s.Speculation.Tokens)
	}
	return c
}

// ample gives a run memory for all its requests at once.
func (c *scenario) ample() {
	c.hbm, c.spec.DRAMGiB, c.spec.Offload.HostPoolRatio = 1<<40, 1.0/16, 0
	c.spec.MaxRequests, c.spec.MaxTokens, c.spec.Prefill.ChunkTokens = 64, 4096, 4096
}

// Grants equal the memory in use in both tiers, and never exceed the tier, at every event; nothing
// is left when all have gone, and every token that is not rejected is emitted.
func TestHotMemoryIsConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawHot(t)
		o := c.drive(t, func(o *outcome) error {
			if used := o.server.HBMUsed(); used > c.hbm {
				return fmt.Errorf("law 2: %d bytes of HBM used of %d", used, c.hbm)
			}
			return o.server.Check()
		})
		if left := o.server.Left(); left != (sim.Holdings{}) {
			t.Fatalf("left behind: %+v\n%v", left, c)
		}
		tokens := 0
		for _, r := range o.requests {
			if r.Rejected == "" {
				tokens += r.Output
			}
		}
		emitted := 0
		for _, s := range o.steps {
			emitted += s.Tokens
			if s.Loaded < 0 || s.Loaded > s.Selected {
				t.Fatalf("step %d misses %d of %d blocks selected\n%v", s.Index, s.Loaded, s.Selected, c)
			}
		}
		preempted := 0
		for _, r := range o.requests {
			preempted += r.Preemptions
		}
		if emitted < tokens || preempted == 0 && emitted != tokens {
			t.Fatalf("%d tokens emitted of %d\n%v", emitted, tokens, c)
		}
	})
}

// The same run twice is the same, to the last record.
func TestHotIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawHot(t)
		if a, b := c.drive(t, nil), c.drive(t, nil); !reflect.DeepEqual(a.log, b.log) {
			t.Fatalf("two runs differ\n%v", c)
		}
	})
}

// A larger buffer never loads more, and one for the whole context loads nothing. With memory for
// all, steps are the same whatever the buffer.
func TestHotInclusion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawHot(t)
		c.ample()
		c.spec.Scheduler, c.spec.Offload.HotRelease = "vllm-v1", sim.ReleasePrefilled
		c.spec.PrefixCache.Mode = sim.PrefixOff // hits depend on when blocks are saved
		for i := range c.arrivals {             // a batch that no loading time can change
			c.arrivals[i].At, c.arrivals[i].Cached = 0, 0
		}
		last, block := int64(-1), c.spec.BlockTokens
		for _, more := range []int{0, block, 3 * block, 400} {
			wide := *c
			wide.spec.Offload.HotBuffer = (c.spec.Offload.HotBuffer + more + block - 1) / block * block
			loads := wide.drive(t, nil).spy.loads
			if last >= 0 && loads > last || more == 400 && loads != 0 {
				t.Fatalf("%d blocks loaded with buffers of %d tokens, %d with smaller ones\n%v", loads,
					wide.spec.Offload.HotBuffer, last, c)
			}
			last = loads
		}
	})
}

// Requests that keep their KV while there is room load nothing where there is room for all.
func TestHotHybridLoadsLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawHot(t)
		c.ample()
		c.spec.Offload.HotRelease = sim.ReleaseShort
		if loads := c.drive(t, nil).spy.loads; loads != 0 {
			t.Fatalf("%d blocks loaded with memory for all\n%v", loads, c)
		}
	})
}

// servedHot is a system with buffers of twelve blocks of two tokens, eight of which are selected.
func servedHot() *scenario {
	c := &scenario{model: tiny(3, 2), gpu: "h200", seed: 3, hbm: 1 << 40}
	c.spec = sim.Spec{Selection: sim.SelectionSpec{On: true, Policy: "indexer", BudgetTokens: 16,
		RecentBlocks: 1}, BlockTokens: 2,
		Offload: sim.OffloadSpec{On: true, Load: cost.LoadSwap, Save: "flash", HotBuffer: 24,
			WorkingSetSteps: 12, SaveBufferMiB: 1}, DRAMGiB: 1.0 / 16,
		Utilisation: 0.9, Scheduler: "vllm-v1", MaxRequests: 4, MaxTokens: 1000,
		Prefill:    sim.PrefillSpec{ChunkTokens: 1000, Split: "chunked", OverLength: "reject"},
		Simulation: sim.SimulationSpec{Heads: "full"}}
	return c
}

// The first step of a decode whose context exceeds its buffer loads all candidates that it selects,
// of every layer and head; later loads are the misses of an LRU buffer on the cycles that its
// groups replay.
func TestHotLoadsByHand(t *testing.T) {
	c := servedHot()
	c.arrivals = []sim.Arrival{{Prompt: 200, Output: 30}}
	o := c.drive(t, nil)
	lib := library(t, &c.spec)
	const groups, slots = 6, 24/2 - 1
	step := 0
	for _, rec := range o.steps {
		if rec.Decodes == 0 {
			continue
		}
		context := 200 + 1 + step // with the token of the step
		grid := lib.Grid((context+1)/2 - 1)
		want := int64(0)
		for g := range groups {
			cur := lib.CursorOf(c.seed, 1, g/2, g%2, 2)
			reuse := lib.Reuse(cur, grid, slots, 8)
			want += int64(reuse.Misses((int(cur.Phase)+step+1)%lib.Steps(), step))
		}
		if step == 0 && want != groups*7 {
			t.Fatalf("first step: %d, want all 7 candidates of %d groups", want, groups)
		}
		if rec.Loaded != want || rec.Selected != groups*8 {
			t.Fatalf("step %d: %d loaded of %d selected, want %d of %d", step, rec.Loaded, rec.Selected,
				want, groups*8)
		}
		step++
	}
	if step != 29 {
		t.Errorf("%d decode steps", step)
	}
}

// With drafts a step loads what its queries miss at positions that no step has reached: all queries
// of the first step, and as many more as tokens were accepted before.
func TestDraftsOfHotBuffersByHand(t *testing.T) {
	const drafts, groups, slots = 3, 8, 24/2 - 1 // two heads of three layers and of an MTP layer
	c := servedHot()
	c.model.MTPLayers, c.model.Drafts = 1, true
	c.spec.Speculation.Tokens, c.spec.Speculation.Acceptance = drafts, 0.6
	c.arrivals = []sim.Arrival{{Prompt: 200, Output: 80}}
	o := c.drive(t, nil)
	lib, at, reached, several := library(t, &c.spec), 1, 0, 0
	for _, rec := range o.steps {
		if rec.Decodes == 0 {
			continue
		}
		grid, want := lib.Grid((200+at+1)/2-1), int64(0)
		for p := max(at, reached+1); p <= at+drafts; p++ {
			for g := range groups {
				cur := lib.CursorOf(c.seed, 1, g/2, g%2, 2)
				want += int64(lib.Reuse(cur, grid, slots, 8).Misses((int(cur.Phase)+p)%lib.Steps(), p-1))
			}
		}
		if rec.Loaded != want || rec.Selected != groups*8*(1+drafts) {
			t.Fatalf("position %d: %d loaded of %d selected, want %d of %d", at, rec.Loaded,
				rec.Selected, want, groups*8*(1+drafts))
		}
		if rec.Tokens > 1 {
			several++
		}
		reached, at = at+drafts, at+rec.Tokens
	}
	if several == 0 {
		t.Error("no step has an accepted draft")
	}
}

// A prompt that begins as an earlier one loads the blocks that both have, keys and values and
// metadata of every layer, and computes the rest. While it is prefilled all its blocks are in HBM;
// afterwards its buffer.
func TestPrefixOfHotBuffersByHand(t *testing.T) {
	c := servedHot()
	c.spec.PrefixCache.Mode = sim.PrefixVLLM
	c.arrivals = []sim.Arrival{
		{Prompt: 200, Output: 5, Content: holding(9, text(1, 200))},
		{At: 3600 * des.Second, Prompt: 300, Output: 5,
			Content: holding(0, text(1, 200), text(9, 4), text(2, 96))}}
	geo := c.model.Geometry(2)
	block := (geo.BlockBytes + geo.MetaBytes) * int64(geo.Groups())
	var most int64
	o := c.drive(t, func(o *outcome) error {
		most = max(most, o.server.HBMUsed())
		return o.server.Check()
	})
	if hit := o.requests[1].Hit; hit != 204 || o.requests[1].HitDRAM != hit || o.requests[0].Hit != 0 {
		t.Errorf("hit %d of 204 tokens: %+v", hit, o.requests)
	}
	var loaded []int64
	for i := range o.spy.ended {
		if b := o.spy.ended[i].Prefix.Bytes; b > 0 {
			loaded = append(loaded, b)
		}
	}
	if !reflect.DeepEqual(loaded, []int64{102 * block}) {
		t.Errorf("loaded %d bytes, want 102 blocks of %d", loaded, block)
	}
	if want := 150 * block; most != want {
		t.Errorf("%d bytes of HBM at most, want %d", most, want)
	}
	if sum := o.metrics.Summary(); sum.PrefixCache.DRAM.LoadedBytes != 102*block {
		t.Errorf("summary: %+v", sum.PrefixCache)
	}
}
