package sim_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// Eviction uses the scores of the selection: in every step each candidate that a top-k policy
// picked scores no less than each that it did not.
func TestBlockScoresAreThoseThatSelect(t *testing.T) {
	steps := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		c.spec.Selection.On, c.spec.Offload.On, c.spec.Offload.Eviction = true, true, kv.ByScore
		if c.spec.Selection.Policy != "arkvale" {
			t.Skip("not top-k")
		}
		c.drive(t, func(o *outcome) error {
			n, err := o.server.CheckScores()
			steps += n
			return err
		})
	})
	if steps < 1000 && !testing.Short() {
		t.Errorf("only %d selections were looked at", steps)
	}
}

// Where the blocks have no scores, eviction by score is refused.
func TestNoEvictionByScoreWithoutScores(t *testing.T) {
	spec := sim.Spec{
		Selection:   sim.SelectionSpec{On: true, Policy: "arkvale", BudgetTokens: 64, RecentBlocks: 1},
		BlockTokens: 16,
		Offload: sim.OffloadSpec{On: true, Load: "flash", Save: "flash", Eviction: kv.ByScore,
			Pool: "unified", WorkingSetSteps: 1}, DRAMGiB: 1, Scheduler: "vllm", MaxRequests: 1,
		MaxTokens: 64, Prefill: sim.PrefillSpec{Split: "layer", ChunkTokens: 64},
		Simulation: sim.SimulationSpec{Heads: "full"},
	}
	model := tiny(1, 1)
	for name, change := range map[string]func(*sim.Config){
		"full attention":       func(c *sim.Config) { c.Spec.Selection.On = false },
		"a device selects":     func(c *sim.Config) { c.Addressed, c.DeviceSelects = true, true },
		"a recording replayed": func(c *sim.Config) { c.Recording = &dsa.Recording{} },
	} {
		cfg := sim.Config{
			Spec: spec, Geometry: model.Geometry(16), HBMBytes: 1 << 20, Library: library(t, &spec),
			Model: sim.Model{Layers: 1, KVHeads: 1, TokenValues: model.TokenValues(),
				MaxContext: model.MaxContext},
		}
		if _, err := sim.NewServer(cfg); err != nil {
			t.Fatal(err)
		}
		change(&cfg)
		if _, err := sim.NewServer(cfg); err == nil || !strings.Contains(err.Error(),
			"offload.eviction") {
			t.Errorf("%s: error is %v, want one of offload.eviction", name, err)
		}
	}
}
