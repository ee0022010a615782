package live_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// nothing is a machine of unlimited memory that does nothing, at once, but for a layer's time when
// it is waited for, and a launch's: the rest of a run is the host's part.
type nothing struct {
	live.Machine
	layer   time.Duration // of the GPU: the host's threads have this long to fall asleep
	launch  time.Duration // of the driver, each
	next    atomic.Int64
	uploads atomic.Int64 // from pinned memory
	bytes   atomic.Int64 // of them
	calls   atomic.Int64 // that put work on a stream
	mu      sync.Mutex
	pinned  []cuda.HostMemory
}

const nothingOnDevice = 1 << 40 // addresses of device memory begin here

func (n *nothing) Init(int) error                   { return nil }
func (n *nothing) Device() (cuda.DeviceInfo, error) { return cuda.DeviceInfo{}, nil }
func (n *nothing) DeviceAlloc(bytes int64) (cuda.Ptr, error) {
	return cuda.Ptr(n.next.Add((bytes+4095)/4096*4096) - (bytes+4095)/4096*4096 + nothingOnDevice), nil
}
func (n *nothing) DeviceFree(cuda.Ptr) error { return nil }

// HostAlloc reserves addresses; untouched pages use no memory.
func (n *nothing) HostAlloc(bytes int64, _ cuda.HostPages) (cuda.HostMemory, error) {
	b, err := syscall.Mmap(-1, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pinned = append(n.pinned, cuda.HostMemoryOf(b))
	return cuda.HostMemoryOf(b), err
}
func (n *nothing) HostFree(m cuda.HostMemory) error { return syscall.Munmap(m.Bytes()) }

func (n *nothing) StreamCreate(bool) (cuda.Stream, error) { return 1, nil }
func (n *nothing) StreamDestroy(cuda.Stream) error        { return nil }
func (n *nothing) StreamSync(cuda.Stream) error {
	return busy(n.layer)
}

func busy(d time.Duration) error {
	for start := time.Now(); time.Since(start) < d; {
	}
	return nil
}
func (n *nothing) StreamWait(cuda.Stream, cuda.Event) error        { return nil }
func (n *nothing) EventCreate(bool) (cuda.Event, error)            { return 1, nil }
func (n *nothing) EventDestroy(cuda.Event) error                   { return nil }
func (n *nothing) EventSync(cuda.Event) error                      { return nil }
func (n *nothing) EventRecord(cuda.Event, cuda.Stream) error       { return nil }
func (n *nothing) SaverCreate(int, int64, int) (cuda.Saver, error) { return 1, nil }
func (n *nothing) SaverDestroy(cuda.Saver) error                   { return nil }
func (n *nothing) Workspace(cuda.Operation) (int64, error)         { return 1 << 20, nil }

// Launch counts uploads and has lookups find what the host expects.
func (n *nothing) Launch(op cuda.Operation, _ cuda.Stream) error {
	switch a := op.(type) {
	case *cuda.SaveArgs:
		return nil
	case *cuda.LookupArgs:
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, m := range n.pinned {
			if at := a.Misses - m.Ptr(); a.Misses >= m.Ptr() && at < cuda.Ptr(len(m.Bytes())) {
				cuda.Slice[int64](m)[at/8] = int64(a.Frees)
			}
		}
	case *cuda.MemcpyArgs:
		if a.Dst >= nothingOnDevice && a.Dst < nothingOnDevice+cuda.Ptr(n.next.Load()) {
			n.uploads.Add(1)
			n.bytes.Add(a.Bytes)
		}
	}
	n.calls.Add(1)
	return busy(n.launch)
}

// equals is a workload of equal requests that arrive at once.
type equals struct{ left, prompt, output int }

func (w *equals) Next() (sim.Arrival, bool, error) {
	w.left--
	return sim.Arrival{Prompt: w.prompt, Output: w.output}, w.left >= 0, nil
}

// BenchmarkHost is the host's share of a decode step of LWM-7B's shape, with 4 us of the driver for
// each launch: 1,024 (layer, KV head) groups of 64 blocks each, with HBM for 1.1 and for 2 times
// what 16 requests select in one step. A layer of the GPU lasts 150 us, which ns/op includes. PSA's
// lists are as long as its threshold has them, of all heads of a layer together or of each.
func BenchmarkHost(b *testing.B) {
	for _, c := range []struct {
		selection string
		requests  int
		gib       int64
	}{{"arkvale", 1, 2}, {"arkvale", 4, 6}, {"arkvale", 16, 24}, {"arkvale", 16, 40},
		{"arkvale", 6, 20}, {"psa", 6, 20}, {"psa, each head", 6, 20}, {"arkvale", 6, 9},
		{"psa, each head", 6, 10}, {"psa, the GPU's lookup", 6, 20}, {"psa, the GPU's lookup", 6, 10}} {
		b.Run(fmt.Sprintf("%s, %d requests, %d GiB", c.selection, c.requests, c.gib),
			func(b *testing.B) { benchmarkHost(b, c.selection, c.requests, c.gib<<30) })
	}
}

func benchmarkHost(b *testing.B, selection string, requests int, kv int64) {
	spec := sim.Spec{
		Selection: sim.SelectionSpec{On: true, Policy: "arkvale", BudgetTokens: 2048, SinkBlocks: 2,
			RecentBlocks: 2}, BlockTokens: 32,
		Offload: sim.OffloadSpec{On: true, Load: "flash", Save: "flash", Eviction: "lru",
			Pool: "unified", SaveBufferMiB: 256, WorkingSetSteps: 12}, DRAMGiB: 224, Scheduler: "vllm",
		MaxRequests: 16, MaxTokens: 2048,
		Watermark: 0.01, Prefill: sim.PrefillSpec{Split: "layer", ChunkTokens: 2048},
		Simulation: sim.SimulationSpec{Heads: "full"},
	}
	switch selection {
	case "psa":
		spec.Selection.Policy, spec.Selection.Epsilon, spec.Selection.Stop = "psa", 0.84, "layer"
	case "psa, each head":
		spec.Selection.Policy, spec.Selection.Epsilon, spec.Selection.Stop = "psa", 0.49,
			sim.PSAStopHead
	case "psa, the GPU's lookup":
		spec.Selection.Policy, spec.Selection.Epsilon, spec.Selection.Stop, spec.Offload.Lookup = "psa",
			0.49, sim.PSAStopHead,
			sim.LookupGPU
	}
	if spec.Progressive() {
		spec.Selection.Microbatch, spec.Selection.Pipelined, spec.Selection.SinkBlocks = 16, true, 0
	}
	m, model, device, step := onNothing(b, spec, requests, kv)
	for settled := 0; settled < 100; {
		if step() == requests {
			settled++
		}
	}
	m.layer, m.launch = 150*time.Microsecond, 4*time.Microsecond
	was := device.Counters()
	m.uploads.Store(0)
	m.bytes.Store(0)
	m.calls.Store(0)
	cores := processor()
	for b.Loop() {
		step()
	}
	per := func(x float64) float64 { return x / float64(b.N) }
	now, layers := device.Counters(), float64(model.Layers)
	b.ReportMetric(per(float64(processor()-cores)/1e6), "core-ms/step")
	b.ReportMetric(per(float64(now.Lookup-was.Lookup)/1e6), "lookup-ms/step")
	b.ReportMetric(per(float64(now.Lists-was.Lists)/1e6), "lists-ms/step")
	b.ReportMetric(per(float64(now.Loaded-was.Loaded)), "loaded/step")
	b.ReportMetric(per(float64(m.uploads.Load()))/layers, "uploads/layer")
	b.ReportMetric(per(float64(m.bytes.Load()))/layers/1024, "KiB/layer")
	b.ReportMetric(per(float64(m.calls.Load()))/layers, "calls/layer")
}

// In HBM a layer's lists upload as many bytes as the modelled device prices; the counts with
// them are a 64th.
func TestListsAreAsLongAsTheModelHasThem(t *testing.T) {
	t.Parallel()
	const requests, steps = 4, 20
	m, model, _, step := onNothing(t, sim.Spec{
		Selection: sim.SelectionSpec{On: true, Policy: "arkvale", BudgetTokens: 2048, SinkBlocks: 2,
			RecentBlocks: 2}, BlockTokens: 32,
		Utilisation: 0.9, Scheduler: "vllm", MaxRequests: requests, MaxTokens: 2048,
		Watermark: 0.01, Prefill: sim.PrefillSpec{Split: "chunked", ChunkTokens: 2048},
		Simulation: sim.SimulationSpec{Heads: "full"},
	}, requests, 40<<30)
	for step() < requests {
	}
	step()
	m.bytes.Store(0)
	for range steps {
		step()
	}
	got := float64(m.bytes.Load()) / steps / float64(model.Layers)
	if want := cost.ListBytes(model, requests*2048); got < want || got > 1.1*want {
		t.Errorf("%.0f bytes a layer went up, the model has %.0f of lists", got, want)
	}
}

// onNothing readies a server of LWM-7B's shape on a machine that does nothing. step runs a step
// and returns its decodes.
func onNothing(b testing.TB, spec sim.Spec, requests int, kv int64) (m *nothing, shape *llm.Model,
	device *live.Device, step func() int) {
	model, err := llm.Load("lwm-7b")
	if err != nil {
		b.Fatal(err)
	}
	source, err := weights.NewRandom(weights.Config{Model: model}, 1)
	if err != nil {
		b.Fatal(err)
	}
	m = &nothing{}
	device, err = live.New(m, live.Config{Spec: &spec, Geometry: model.Geometry(32), Weights: source,
		KVBytes: kv})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { device.Close() })
	s, err := sim.NewServer(sim.Config{
		Spec: spec, Model: sim.Model{Layers: model.Layers, KVHeads: model.KVHeads,
			TokenValues: model.TokenValues(),
			MaxContext:  model.MaxContext},
		Geometry: model.Geometry(32), HBMBytes: kv, Device: device, Addressed: true,
		Library: library(&spec),
	})
	if err != nil {
		b.Fatal(err)
	}
	next, stop := iter.Pull(func(yield func(int) bool) {
		_, err := s.Run(context.Background(), &equals{requests, 10000, 8000}, &stepping{yield: yield})
		if !errors.Is(err, errEnough) {
			b.Error(err)
		}
	})
	b.Cleanup(stop)
	return m, &model, device, func() int {
		n, ok := next()
		if !ok {
			b.Fatal("requests have finished")
		}
		return n
	}
}

// processor is the processor time of this process so far.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// stepping sends the decodes of each step, and ends the run when no other is wanted.
type stepping struct{ yield func(decodes int) bool }

var errEnough = errors.New("enough")

func (s *stepping) Request(*metrics.Request) error { return nil }
func (s *stepping) Gap(des.Time)                   {}
func (s *stepping) Step(r *metrics.Step) error {
	if !s.yield(r.Decodes) {
		return errEnough
	}
	return nil
}
