package live_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// gates notes what follows each gate of the host on its stream.
type gates struct {
	cuda.Machine
	after [][]string // functions
}

func (g *gates) Launch(op cuda.Operation, s cuda.Stream) error {
	switch op.(type) {
	case *cuda.HostGateArgs:
		g.after = append(g.after, nil)
	case *cuda.SaveArgs: // from another thread
		return g.Machine.Launch(op, s)
	}
	if n := len(g.after); n > 0 && len(g.after[n-1]) < 6 {
		g.after[n-1] = append(g.after[n-1], cuda.Function(op))
	}
	return g.Machine.Launch(op, s)
}

// Layers that only decode are launched behind a gate, whole, and compute what the reference does;
// where launches depend on what the lookup finds they come after it.
func TestDecodesAreLaunchedAheadOfTheirLookup(t *testing.T) {
	attend := []string{"ss_host_gate", "ss_flash_h2d", "ss_kv_write", "ss_decode"}
	closing := append(slices.Clone(attend), "ss_digest", "ss_gpu_scatter")
	whole := append(attend, "ss_linear", "ss_rmsnorm")
	gated := []string{"gqa/offload, small", "mha/offload", "mha/select: offload, small", "gqa/layer",
		"gqa/hits: offload, small", "gqa/offload, small, with a dense layer"}
	for _, name := range append(gated, "mha/offload, memcpy", "gqa/psa, small", "gqa/sparse",
		"gqa/dense") {
		gated := slices.Contains(gated, name)
		c := cases()[name]
		if c == nil {
			t.Errorf("no case %s", name)
			continue
		}
		on := emulator.New(emulator.Config{Late: true, Seed: 9})
		m := &gates{Machine: on}
		r := c.run(t, m)
		r.check(t)
		on.Close()
		counters := r.counters[len(r.counters)-1]
		if gated != (counters.Gated > counters.RoundTrips/3) || !gated && counters.Gated > 0 {
			t.Errorf("%s: %d of %d round trips behind a gate", name, counters.Gated, counters.RoundTrips)
		}
		closed, mixed := 0, 0
		for _, after := range m.after[min(1, len(m.after)):] { // the first is launched to load the kernel
			switch {
			case slices.Equal(after, closing):
				closed++
			case slices.Contains(after, "ss_rope"): // of prefills
				mixed++
			case !slices.Equal(after, whole):
				t.Errorf("%s: behind a gate are %v", name, after)
			}
		}
		if gated && (closed == 0 || mixed == 0 || closed+mixed > len(m.after)*2/3) {
			t.Errorf("%s: of %d gates decodes fill blocks behind %d, and prompts compute behind %d", name,
				len(m.after), closed, mixed)
		}
	}
}

// stopping is a device whose n-th Move fails once its layer is launched.
type stopping struct {
	*live.Device
	left int64 // gates until then
}

var errStopped = errors.New("the server stopped")

func (s *stopping) Move(m *kv.Moves) error {
	if s.Counters().Gated >= s.left {
		return errStopped
	}
	return s.Device.Move(m)
}

// A server that stops between a selection and the layer's attention leaves a gate closed: closing
// the device opens it, or what is launched would never end.
func TestCloseOpensGates(t *testing.T) {
	c := cases()["gqa/offload, small"]
	for _, late := range []bool{false, true} {
		m := emulator.New(emulator.Config{Late: late})
		of, err := c.onDevice()
		if err != nil {
			t.Fatal(err)
		}
		device, err := live.New(m, of)
		if err != nil {
			t.Fatal(err)
		}
		model := tiny(&c.shape)
		cfg := c.server(&model)
		cfg.Addressed, cfg.Device = true, &stopping{device, 7}
		server, err := sim.NewServer(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = server.Run(t.Context(), c.workload(), &counted{}); !errors.Is(err, errStopped) {
			t.Fatalf("the run ended with %v", err)
		}
		if n := device.Counters().Gated; n != 7 {
			t.Errorf("%d gates", n)
		}
		if err := device.Close(); err != nil {
			t.Errorf("late %v: %v", late, err)
		}
		if device, pinned := m.Held(); device+pinned > 0 {
			t.Errorf("late %v: %d and %d bytes are still held", late, device, pinned)
		}
		m.Close()
	}
}

// A budget that sinks and the window use up still leaves a candidate: lists are longer than the
// budget, and so is what attention is launched for.
func TestSmallBudgetsAreLaunchedAhead(t *testing.T) {
	c := *cases()["gqa/offload, small"]
	c.spec.Selection.SinkBlocks, c.spec.Selection.RecentBlocks = 2, 4
	on := emulator.New(emulator.Config{Late: true, Seed: 4})
	defer on.Close()
	r := c.run(t, on)
	if n := r.counters[len(r.counters)-1].Gated; n == 0 {
		t.Error("nothing was launched ahead")
	}
}

// Where streams share connections to the GPU, nothing is launched behind a gate: what a lookup
// waits for could wait for it.
func TestNoGatesOnOneConnection(t *testing.T) {
	for value, gates := range map[string]bool{"1": false, "2": false, " 1 ": false, "8": true,
		"": true} {
		t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", value)
		on := emulator.New(emulator.Config{})
		r := cases()["gqa/offload, small"].run(t, on)
		r.check(t)
		on.Close()
		if c := r.counters[len(r.counters)-1]; c.Gated > 0 != gates || c.RoundTrips == 0 {
			t.Errorf("%q: %d of %d round trips behind a gate", value, c.Gated, c.RoundTrips)
		}
	}
}
