package live_test

import (
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// late is a workload of two requests with idle time between them.
type late struct{ next int }

func (w *late) Next() (sim.Arrival, bool, error) {
	w.next++
	return sim.Arrival{At: des.Time(w.next) * 300 * des.Millisecond, Prompt: 33, Output: 3},
		w.next <= 2, nil
}

// Pacing waits while nothing runs, and adds nothing to any step. Both bounds hold
// however busy the machine is.
func TestPaceWaitsOutIdleGaps(t *testing.T) {
	c := cases()["mha/offload"]
	m := emulator.New(emulator.Config{})
	defer m.Close()
	source, err := weights.NewRandom(c.shape, 7)
	if err != nil {
		t.Fatal(err)
	}
	model := c.shape.Model
	start := time.Now()
	device, err := live.New(m, live.Config{Spec: &c.spec, Geometry: model.Geometry(c.spec.BlockTokens),
		Weights: source, KVBytes: c.kvBytes, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	cfg := c.server(&model)
	cfg.Addressed, cfg.Device = true, device
	var idle, waited time.Duration
	cfg.Idle = func(d des.Time) error {
		from := time.Now()
		device.Idle(t.Context(), d)
		idle, waited = idle+time.Duration(d), waited+time.Since(from)
		if passed := time.Since(start); passed < idle {
			t.Errorf("%v after the start idle times of %v have passed", passed, idle)
		}
		return nil
	}
	server, err := sim.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	steps := &counted{}
	if _, err := server.Run(t.Context(), &late{}, steps); err != nil {
		t.Fatal(err)
	}
	elapsed := time.Since(start)
	if idle < 300*time.Millisecond { // before the first request
		t.Errorf("idle times of %v for arrivals at 0.3 and 0.6 s", idle)
	}
	var ran time.Duration
	for _, s := range steps.steps {
		ran += time.Duration(s.Timing.Elapsed)
	}
	// What a step measures of itself may be a little more than its own time; with idle time in it,
	// it would be far more.
	if ran > elapsed-waited+waited/2 {
		t.Errorf("steps of %v in a run of %v that waited for %v", ran, elapsed, waited)
	}
	if err := device.Close(); err != nil {
		t.Error(err)
	}
}
