package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Whatever is evicted, loaded, set back or preempted, what a device is told
// suffices to have every block's tokens in the slot that attention reads.
func TestDetailNamesEveryBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawScenario(t).follow(t)
	})
}

// Saves that land before the step that queued them ends once left a prefill's
// reservation negative, and blocks got slots beyond the pool.
func TestDetailWhenSavesLandWithinTheStep(t *testing.T) {
	c := &scenario{model: tiny(3, 3), gpu: "a100-40gb", hbm: 38592, seed: 1}
	c.spec = sim.Spec{
		Selection:   sim.SelectionSpec{Policy: "arkvale", BudgetTokens: 6, RecentBlocks: 1},
		BlockTokens: 3,
		Offload: sim.OffloadSpec{On: true, Load: "memcpy", Save: "memcpy", Eviction: "lru",
			Pool: "per-layer", WorkingSetSteps: 1}, Utilisation: 0.9, DRAMGiB: 216 * 192. / (1 << 30),
		Scheduler: "vllm", MaxRequests: 2, MaxTokens: 2,
		Prefill:    sim.PrefillSpec{Split: "layer", ChunkTokens: 1, OverLength: "truncate"},
		Simulation: sim.SimulationSpec{Groups: 1},
	}
	for _, a := range [][2]int{{10, 25}, {13, 25}} {
		c.arrivals = append(c.arrivals, sim.Arrival{Prompt: a[0], Output: a[1]})
	}
	c.follow(t)
}

// follow runs the scenario on a device that keeps track of every block.
func (c *scenario) follow(t fatal) {
	c.addressed, c.spec.Simulation.Heads, c.spec.PrefixCache.Mode = true, "full", sim.PrefixOff
	c.spec.PrefixCache.Attend = sim.PrefixDense
	for i := range c.arrivals {
		c.arrivals[i].Cached = 0 // a device has what it computed
	}
	m := &shadow{scenario: c, hbm: map[int32]content{}, dram: map[place]bool{}, stash: map[place]int{},
		dense: map[place]int{}, tables: tables{id: map[int32]int{}, slot: map[place]int32{}}}
	o := &outcome{spy: &spy{Device: c.modelled(t, profile(t, c.gpu))}}
	m.Device = o.spy
	o.server = c.server(t, m)
	var err error
	if o.metrics, err = o.server.Drive(&list{arrivals: c.arrivals}, o,
		func() error { return nil }); err != nil {
		if c.spec.Progressive() &&
			strings.Contains(err.Error(), "attends to more blocks than HBM holds at once") {
			return
		}
		t.Fatal(fmt.Sprintf("%v\n%v", err, c))
	}
	for id := range m.ids() {
		// What the last step finished is dropped with the next, which never comes.
		if i := slices.IndexFunc(o.requests, func(r metrics.Request) bool {
			return r.ID == id
		}); o.requests[i].LastToken != o.steps[len(o.steps)-1].Start+
			o.steps[len(o.steps)-1].Timing.Elapsed+c.engine.Reply {
			t.Fatal(fmt.Sprintf("blocks are left of request %d, which has gone\n%v", id, c))
		}
	}
}

// A device runs the rounds of a layer over one set of slots, so a layer whose
// selections do not fit is refused; a modelled one gives the slots of one round
// to the next.
func TestDetailRefusesLayersThatDoNotFit(t *testing.T) {
	c := &scenario{model: tiny(2, 2), gpu: "h200", hbm: 190 << 10, seed: 1}
	c.spec = sim.Spec{
		Selection: sim.SelectionSpec{On: true, Policy: "psa", Stop: sim.PSAStopHead, Epsilon: 0.99999,
			Microbatch: 2, Pipelined: true, BudgetTokens: 8, RecentBlocks: 1}, BlockTokens: 2,
		Offload: sim.OffloadSpec{On: true, Load: "flash", Save: "flash", Eviction: "lru",
			Pool: "unified", SaveBufferMiB: 1, WorkingSetSteps: 4},
		Utilisation: 0.9,
		DRAMGiB:     0.01, Scheduler: "vllm", MaxRequests: 8, MaxTokens: 64,
		Prefill:    sim.PrefillSpec{Split: "layer", ChunkTokens: 64, OverLength: "truncate"},
		Simulation: sim.SimulationSpec{Heads: "full"},
	}
	for range 8 {
		c.arrivals = append(c.arrivals, sim.Arrival{Prompt: 200, Output: 20})
	}
	o := c.drive(t, nil)
	if o.metrics.Summary().Completed != 8 {
		t.Fatalf("%+v", o.metrics.Summary())
	}
	c.addressed = true
	o = c.start(t, profile(t, c.gpu))
	_, err := o.server.Drive(&list{arrivals: c.arrivals}, o, func() error { return nil })
	if err == nil {
		t.Fatal("no error")
	}
	var layer, slots, reserved, needed int
	_, text, _ := strings.Cut(err.Error(), "kv: ")
	if _, bad := fmt.Sscanf(text, "layer %d attends to more blocks than HBM holds at once: %d "+
		"slots, %d reserved for metadata and prefill buffers, %d needed", &layer, &slots,
		&reserved, &needed); bad != nil || needed <= slots-reserved {
		t.Errorf("%v (%v)", err, bad)
	}
}
