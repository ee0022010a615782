package sim_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/fleet"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/score"
)

// stopping ends a run's context in its first step.
type stopping struct {
	log
	stop context.CancelFunc
}

func (s *stopping) Step(r *metrics.Step) error {
	s.stop()
	return s.log.Step(r)
}

// An interrupt is obeyed at the next event, of a server and of a fleet: no further step is
// recorded, however many there would be.
func TestInterruptEndsAtTheNextEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		for _, many := range []bool{false, true} {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			rec := &stopping{stop: cancel}
			serve := c.server(t, c.modelled(t, profile(t, c.gpu))).Run
			if many {
				serve = newFleet(t, c.fleet(t, 1, fleet.RoundRobin)).Run
			}
			_, err := serve(ctx, c.workload(0), rec)
			if len(rec.steps) > 1 || len(rec.steps) == 1 && err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("%d steps after an interrupt in the first (fleet %v): %v\n%v",
					len(rec.steps), many, err, c)
			}
		}
	})
}

// rankings ends a run's context when it is first asked for scores, and counts how often it is.
type rankings struct {
	dsa.Scores
	stop  context.CancelFunc
	asked int
}

func (r *rankings) Fill(family, n int, s *dsa.Sheet) {
	r.stop()
	r.asked++
	r.Scores.Fill(family, n, s)
}

// An interrupt is obeyed within a step, before the next layer or group is ranked: of long contexts
// one may take a second, and a step has a thousand.
func TestInterruptEndsWithinAStep(t *testing.T) {
	const layers, heads = 8, 2
	for name, most := range map[string]int{"arkvale": 1, "psa": heads} { // ranked at a time
		for _, many := range []bool{false, true} {
			c := &scenario{model: tiny(layers, heads), gpu: "a100-40gb", hbm: 1 << 30, seed: 1,
				arrivals: []sim.Arrival{{Prompt: 200, Output: 20}},
				spec: sim.Spec{Selection: sim.SelectionSpec{On: true, Policy: name, Epsilon: 0.9,
					Microbatch: 2, Stop: "layer", BudgetTokens: 32, SinkBlocks: 1, RecentBlocks: 1},
					BlockTokens: 4, Offload: sim.OffloadSpec{On: true, Load: "flash", Save: "flash",
						SaveBufferMiB: 1, Eviction: "lru", Pool: "unified", WorkingSetSteps: 12}, DRAMGiB: 1,
					Utilisation: 0.9, Scheduler: "vllm", MaxRequests: 4,
					MaxTokens: 400, Prefill: sim.PrefillSpec{Split: "plain", OverLength: "truncate"},
					Simulation: sim.SimulationSpec{Heads: "full"}}}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			scores := &rankings{Scores: score.New(score.Default, 1), stop: cancel}
			policy, named, err := c.spec.Policy(1)
			if err != nil {
				t.Fatal(err)
			}
			cfg := c.config(t, c.modelled(t, profile(t, c.gpu)))
			cfg.Library = dsa.NewLibrary(scores, policy, dsa.Setting{Digest: named.Digest,
				Sinks: c.spec.Selection.SinkBlocks, Window: c.spec.Selection.RecentBlocks, Queries: 2},
				1000)
			var rec log
			if many {
				f := c.fleet(t, 1, fleet.RoundRobin)
				f.Library = cfg.Library
				_, err = newFleet(t, f).Run(ctx, c.workload(0), &rec)
			} else {
				var s *sim.Server
				if s, err = sim.NewServer(cfg); err != nil {
					t.Fatal(err)
				}
				_, err = s.Run(ctx, c.workload(0), &rec)
			}
			if err != context.Canceled || scores.asked < 1 || scores.asked > most {
				t.Errorf("%s, fleet %v: ranked %d times of %d, %v; want at most %d, and %v", name, many,
					scores.asked, layers*heads, err, most, context.Canceled)
			}
		}
	}
}
