package live_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// simulate runs a scenario on the modelled device.
func (c *scenario) simulate(t *testing.T, change func(*sim.Config)) []metrics.Step {
	t.Helper()
	records, err := c.trySimulate(t, change)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func (c *scenario) trySimulate(t *testing.T, change func(*sim.Config)) ([]metrics.Step, error) {
	t.Helper()
	model := c.shape.Model
	cfg := c.server(&model)
	device, err := modelledDevice(&c.spec, &model)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Device = device
	if change != nil {
		change(&cfg)
	}
	server, err := sim.NewServer(cfg)
	if err != nil {
		return nil, err
	}
	steps := &counted{}
	_, err = server.Run(context.Background(), c.workload(), steps)
	return steps.steps, err
}

// With one sequence of batches, the blocks that a live run selects, hits, loads, evicts and saves
// equal the simulation's with every head, step by step: by the server's account and by the device's
// own.
func TestLiveRunDoesWhatTheSimulationSays(t *testing.T) {
	for name, c := range chosen() {
		if c.selects {
			continue // the simulation has no weights to select with; see the test below
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := emulator.New(emulator.Config{Late: true, Seed: 5})
			defer m.Close()
			c.run(t, m).equals(t, c.simulate(t, nil))
		})
	}
}

// equals holds a live run against a simulation's records.
func (r *run) equals(t *testing.T, want []metrics.Step) {
	t.Helper()
	if len(r.steps) != len(want) {
		t.Fatalf("%d steps live, %d simulated", len(r.steps), len(want))
	}
	var sum metrics.Step
	for i := range want {
		got, want := r.steps[i], want[i]
		if got != want {
			t.Fatalf("step %d: live\n%+v\nsimulated\n%+v", i, got, want)
		}
		done := r.counters[i]
		if i > 0 {
			before := r.counters[i-1]
			done.Selected, done.Loaded, done.Saved = done.Selected-before.Selected,
				done.Loaded-before.Loaded, done.Saved-before.Saved
			done.Rounds, done.Ahead = done.Rounds-before.Rounds, done.Ahead-before.Ahead
		}
		if done.Rounds != want.Rounds || done.Ahead != want.Ahead {
			t.Fatalf("step %d: the device went through %d rounds and loaded %d blocks for rounds that "+
				"never came; simulated %d and %d", i, done.Rounds, done.Ahead, want.Rounds, want.Ahead)
		}
		if done.Loaded != want.Loaded || done.Saved != want.Saved || r.spec.Offload.On &&
			done.Selected != want.Selected {
			t.Fatalf("step %d: the device read %d blocks, loaded %d and saved %d; simulated %d, %d and %d",
				i, done.Selected, done.Loaded, done.Saved, want.Selected, want.Loaded, want.Saved)
		}
		sum.Selected += want.Selected
		sum.Loaded += want.Loaded
		sum.Evicted += want.Evicted
		sum.Rounds += want.Rounds
		sum.Ahead += want.Ahead
		sum.Saved += want.Saved
	}
	if r.spec.Offload.On && (sum.Selected == 0 || sum.Saved == 0) || r.evicts &&
		(sum.Loaded == 0 || sum.Evicted == 0) {
		t.Errorf("nothing to compare: %+v", sum)
	}
	if r.spec.Progressive() && sum.Rounds == 0 || r.evicts && r.spec.Progressive() &&
		r.spec.Selection.Pipelined && !r.everything() && sum.Ahead == 0 {
		t.Errorf("no rounds to compare: %+v", sum)
	}
}

// What a live run recorded, the simulator replays: the same blocks selected, hit, loaded, evicted
// and saved in every step, whether the score process or the model selected.
func TestReplayedSelectionsAreTheLiveOnes(t *testing.T) {
	for name, c := range chosen() {
		if !c.spec.Offload.On || !c.spec.Sparse() || strings.HasPrefix(name, "mha/") {
			continue // one model is enough, because recordings of both are replayed alike
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := emulator.New(emulator.Config{Late: true, Seed: 9})
			defer m.Close()
			var file bytes.Buffer
			c.record = &file
			live := c.run(t, m)
			live.equals(t, c.simulate(t,
				func(cfg *sim.Config) { cfg.Recording, cfg.Library = opened(t, file.Bytes()), nil }))
		})
	}
}

func opened(t *testing.T, file []byte) *dsa.Recording {
	t.Helper()
	rec, err := dsa.OpenRecording(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// Without offloading, where what the model chose stays on the GPU, recording brings it out and
// changes nothing.
func TestRecordingChangesNothing(t *testing.T) {
	m := emulator.New(emulator.Config{})
	defer m.Close()
	c := cases()["gqa/select: sparse"]
	plain := c.run(t, m)
	var file bytes.Buffer
	c.record = &file
	c.run(t, m).equals(t, plain.steps)
	if opened(t, file.Bytes()).Requests() != 7 {
		t.Error("requests are missing")
	}
}

func TestReplayNeedsTheSameSystem(t *testing.T) {
	m := emulator.New(emulator.Config{})
	defer m.Close()
	c := cases()["mha/select: offload"]
	var file bytes.Buffer
	c.record = &file
	c.run(t, m)
	for want, change := range map[string]func(*sim.Config){
		"system.block_tokens: 16 when selections were recorded, 32 now": func(cfg *sim.Config) {
			cfg.Spec.BlockTokens, cfg.Spec.Selection.BudgetTokens = 32, 128
		},
		"blocks of selection.budget_tokens to choose: 2": func(cfg *sim.Config) {
			cfg.Spec.Selection.BudgetTokens = 80
		},
		"selection.sink_blocks: 1": func(cfg *sim.Config) {
			cfg.Spec.Selection.SinkBlocks = 0
		},
		"seed: 3 when selections were recorded, 4 now": func(cfg *sim.Config) { cfg.Seed = 4 },
		"layers: 2": func(cfg *sim.Config) { cfg.Model.Layers = 4 },
		"another trace": func(cfg *sim.Config) {
			cfg.Spec.Prefill.MaxPromptTokens = 90
		},
		"set selection.on": func(cfg *sim.Config) { cfg.Spec.Selection.On = false },
	} {
		_, err := c.trySimulate(t,
			func(cfg *sim.Config) {
				cfg.Recording, cfg.Library = opened(t, file.Bytes()),
					nil
				change(cfg)
			})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// Sampled heads have their own rows.
	sampled := c.simulate(t, func(cfg *sim.Config) {
		cfg.Recording, cfg.Library, cfg.Spec.Simulation.Heads, cfg.Spec.Simulation.Groups = opened(t,
			file.Bytes()), nil,
			"sampled", 2
	})
	if !slices.ContainsFunc(sampled, func(r metrics.Step) bool { return r.Selected > 0 }) {
		t.Error("nothing was selected")
	}
}
