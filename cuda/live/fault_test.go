package live_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// onMachine runs a scenario on a machine, with measured time, until ctx ends.
func (c *scenario) onMachine(ctx context.Context, m live.Machine, rec sim.Recorder) (
	metrics *metrics.Run, device *live.Device, err error) {
	of, err := c.onDevice()
	if err != nil {
		return nil, nil, err
	}
	of.Longest = 304
	if device, err = live.New(m, of); err != nil {
		return nil, nil, err
	}
	model := c.shape.Model
	cfg := c.server(&model)
	cfg.Addressed, cfg.Device = true, device
	server, err := sim.NewServer(cfg)
	if err != nil {
		return nil, device, err
	}
	metrics, err = server.Run(ctx, c.workload(), rec)
	return metrics, device, err
}

// onDevice configures a device for the scenario, with weights that are made up.
func (c *scenario) onDevice() (live.Config, error) {
	source, err := weights.NewRandom(c.shape, 7)
	model := c.shape.Model
	return live.Config{Spec: &c.spec, Geometry: model.Geometry(c.spec.BlockTokens), Weights: source,
		KVBytes: c.kvBytes, Seed: 3, Patterns: c.patterns, FindsLines: !c.drawn}, err
}

// An operation that fails ends the run with its name, the step and the layer; what had finished is
// kept, and nothing hangs.
func TestFailureNamesCallStepAndLayer(t *testing.T) {
	for _, name := range []string{"gqa/layer", "gqa/gpu lookup: psa, small"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testFailures(t, cases()[name])
		})
	}
}

func testFailures(t *testing.T, c *scenario) {
	clean := &faulty{Machine: emulator.New(emulator.Config{}), left: -1}
	metrics, device, err := c.onMachine(t.Context(), clean, &counted{})
	if err != nil || metrics.Summary().Completed != 7 {
		t.Fatal(err)
	}
	total := clean.count
	if err := device.Close(); err != nil {
		t.Fatal(err)
	}
	starting := &faulty{Machine: emulator.New(emulator.Config{}), left: -1}
	if _, err := startOnly(c, starting); err != nil {
		t.Fatal(err)
	}
	inLayer := regexp.MustCompile(`step \d+, layer \d+.*: ss_`)
	inStep := regexp.MustCompile(`step \d+.*: ss_`)
	kept := 0
	calls := map[string]bool{}
	failures := 30
	if testing.Short() {
		failures = 8
	}
	for n := starting.count + 3; n < total; n += 1 + (total-starting.count)/failures {
		m := &faulty{Machine: emulator.New(emulator.Config{}), left: n}
		metrics, device, err := c.onMachine(t.Context(), m, &counted{})
		// Time is measured: a run may need fewer steps than the clean one, and end before the last
		// of these operations.
		if err == nil && m.count < n {
			sum := metrics.Summary()
			if sum.Completed != 7 {
				t.Errorf("%d operations: %+v", m.count, sum)
			}
			if err := device.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		var failed *cuda.Error
		if !errors.As(err, &failed) {
			t.Fatalf("operation %d: %v", n, err)
		}
		calls[failed.Call] = true
		switch failed.Call {
		// the step's too, which has no layer, or met there
		case "ss_memcpy", "ss_memset", "ss_rmsnorm", "ss_linear", "ss_stream_sync",
			"ss_stream_wait", "ss_event_record", "ss_argmax", "ss_flash_d2h":
			if !inStep.MatchString(err.Error()) {
				t.Errorf("operation %d: %v", n, err)
			}
		default:
			if !inLayer.MatchString(err.Error()) {
				t.Errorf("operation %d: %v", n, err)
			}
		}
		sum := metrics.Summary()
		if sum.Completed+sum.Rejected > 7 || sum.Requests < sum.Completed {
			t.Errorf("operation %d: %+v", n, sum)
		}
		kept = max(kept, sum.Completed)
		closed := make(chan error, 1)
		go func() { closed <- device.Close() }()
		select {
		case err := <-closed:
			if d, h := m.Machine.(*emulator.Machine).Held(); err != nil || d != 0 || h != 0 {
				t.Errorf(
					"operation %d: closing: %v, %d bytes of device memory and %d of pinned memory are left",
					n, err, d, h)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("operation %d: the device does not close", n)
		}
	}
	if kept < 5 || len(calls) < min(6, failures/2) {
		t.Errorf("at most %d requests had finished; operations that failed: %v", kept, calls)
	}
}

func startOnly(c *scenario, m live.Machine) (*live.Device, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, device, err := c.onMachine(ctx, m, &counted{})
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return device, err
}

// stopper ends a run after some requests.
type stopper struct {
	counted
	after int
	stop  func()
	ids   []int
}

func (s *stopper) Request(r *metrics.Request) error {
	if s.ids = append(s.ids, r.ID); len(s.ids) == s.after {
		s.stop()
	}
	return nil
}

// An interrupt ends a run between two steps; what had finished is kept and the machine is left as
// it was.
func TestInterruptKeepsWhatFinished(t *testing.T) {
	for _, name := range []string{"mha/layer", "mha/dense", "gqa/offload, small"} {
		ctx, cancel := context.WithCancel(t.Context())
		m := emulator.New(emulator.Config{Late: true, Seed: 4})
		rec := &stopper{after: 3, stop: cancel}
		metrics, device, err := cases()[name].onMachine(ctx, m, rec)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", name, err)
		}
		sum := metrics.Summary()
		if sum.Completed != len(rec.ids) || sum.Completed < 3 || sum.Completed == 7 ||
			sum.ThroughputTokS <= 0 {
			t.Errorf("%s: %d requests recorded, %+v", name, len(rec.ids), sum)
		}
		if err := device.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d, h := m.Held(); d != 0 || h != 0 {
			t.Errorf("%s: %d bytes of device memory and %d of pinned memory are left", name, d, h)
		}
		m.Close()
	}
}
