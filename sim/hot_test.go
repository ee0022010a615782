package sim_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// drawHot draws a run with hot buffers.
func drawHot(t *rapid.T) *scenario {
	c := drawScenario(t)
	n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	s := &c.spec
	s.Selection.On, s.Selection.Policy, s.Offload.On, s.Selection.DenseLayers = true, "indexer", true,
		0
	s.PrefixCache.Mode, s.PrefixCache.Attend, s.Offload.BatchControl = sim.PrefixOff, sim.PrefixDense,
		false
	s.Prefill.Split = rapid.SampledFrom([]string{"plain", "chunked"}).Draw(t, "hot prefill")
	s.Offload.Load, s.Selection.SinkBlocks, s.Selection.RecentBlocks = hw.LoadSwap, 0, 1
	s.Selection.BudgetTokens = s.BlockTokens * rapid.SampledFrom([]int{2, 3, 7}).Draw(t, "hot budget")
	s.Offload.HotBuffer = (s.Selection.BudgetTokens/s.BlockTokens + n("buffer", 0, 8)) * s.BlockTokens
	s.Offload.HotRelease = rapid.SampledFrom(sim.HotReleases()).Draw(t, "release")
	s.Offload.HostPoolRatio = pick2(t, "ratio", 0, 0.5, 4)
	for i := range c.arrivals {
		c.arrivals[i].Content = nil
	}
	return c
}

// ample gives a run memory for all its requests at once.
func (c *scenario) ample() {
	c.hbm, c.spec.DRAMGiB, c.spec.Offload.HostPoolRatio = 1<<40, 1<<10, 0
	c.spec.MaxRequests, c.spec.MaxTokens, c.spec.Prefill.ChunkTokens = 64, 4096, 4096
}

// hotDevice is a modelled device with hot buffers.
func (c *scenario) hotDevice(t fatal) *spy {
	d, err := hw.NewDevice(profile(t, c.gpu), &c.model, hw.DeviceOptions{
		LoadEngine: c.spec.Offload.Load, SaveEngine: c.spec.Offload.Save, Offload: true,
		HotSlots: c.spec.Offload.HotBuffer, BlockTokens: c.spec.BlockTokens,
		SaveBufferBytes: int64(c.spec.Offload.SaveBufferMiB * (1 << 20)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &spy{Device: d}
}

func (c *scenario) driveHot(t fatal, look func(*outcome) error) *outcome {
	o := &outcome{spy: c.hotDevice(t)}
	o.server = c.server(t, o.spy)
	o.run(t, c, func() error {
		if look == nil {
			return nil
		}
		return look(o)
	})
	return o
}

// Grants equal the memory in use in both tiers, and never exceed the tier, at every event; nothing
// is left when all have gone, and every token that is not rejected is emitted.
func TestHotMemoryIsConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawHot(t)
		o := c.driveHot(t, func(o *outcome) error {
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
		if a, b := c.driveHot(t, nil), c.driveHot(t, nil); !reflect.DeepEqual(a.log, b.log) {
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
		for i := range c.arrivals { // a batch that no loading time can change
			c.arrivals[i].At, c.arrivals[i].Cached = 0, 0
		}
		last, block := int64(-1), c.spec.BlockTokens
		for _, more := range []int{0, block, 3 * block, 400} {
			wide := *c
			wide.spec.Offload.HotBuffer = (c.spec.Offload.HotBuffer + more + block - 1) / block * block
			loads := wide.driveHot(t, nil).spy.loads
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
		if loads := c.driveHot(t, nil).spy.loads; loads != 0 {
			t.Fatalf("%d blocks loaded with memory for all\n%v", loads, c)
		}
	})
}

// The first step of a decode whose context exceeds its buffer loads all candidates that it selects,
// of every layer and head; later loads are the misses of an LRU buffer on the cycles that its
// groups replay.
func TestHotLoadsByHand(t *testing.T) {
	c := &scenario{model: tiny(3, 2), gpu: "h200", seed: 3, hbm: 1 << 40}
	c.spec = sim.Spec{Selection: sim.SelectionSpec{On: true, Policy: "indexer", BudgetTokens: 16,
		RecentBlocks: 1}, BlockTokens: 2,
		Offload: sim.OffloadSpec{On: true, Load: hw.LoadSwap, Save: "flash", HotBuffer: 24,
			WorkingSetSteps: 12, SaveBufferMiB: 1}, DRAMGiB: 1 << 10,
		Utilisation: 0.9, Scheduler: "vllm-v1", MaxRequests: 4, MaxTokens: 1000,
		Prefill:    sim.PrefillSpec{ChunkTokens: 1000, Split: "chunked", OverLength: "reject"},
		Simulation: sim.SimulationSpec{Heads: "full"}}
	c.arrivals = []sim.Arrival{{Prompt: 200, Output: 30}}
	o := c.driveHot(t, nil)
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
