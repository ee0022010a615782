package calibrate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
)

// gpuBench is the Bench that runs the library's kernels on a GPU. It belongs to one goroutine. A
// point's memory comes from one slab of device memory and one pinned page of addresses. The next
// point reuses both; the host pool only grows.
type gpuBench struct {
	on   func(func(gpu) error) error // runs a function on the GPU's thread
	info cuda.DeviceInfo

	slab      cuda.Ptr
	slabBytes int64
	used      int64
	addresses cuda.HostMemory // pinned, for the memcpy engines' arrays
	addressed int64           // bytes of it in use
	pool      hostPool
	savers    map[int64]cuda.Saver // by threads
	r         *rand.Rand
	warm      string // the probe that kept the card busy last
	rounds    map[roundsKey][][]timedLayers
}

// Warm-ups: how long a point's calls run before they are timed, after another probe and after a
// point of the same. A card under load, as in serving, has a lower clock than an idle one. The
// first times are long enough for a card's clock to settle, the second on a card that has just run
// the same calls at another size.
var (
	settles = [2]time.Duration{250 * time.Millisecond, 100 * time.Millisecond}
	rests   = [2]time.Duration{500 * time.Millisecond, 500 * time.Millisecond}
)

// warmUp returns the warm-up of a probe's next point.
func (g *gpuBench) warmUp(p *Probe) time.Duration {
	if p.settles[0] == 0 {
		return 0
	}
	again := g.warm == p.Name
	g.warm = p.Name
	if again {
		return p.settles[1]
	}
	return p.settles[0]
}

// addressBytes holds two address arrays of the largest point.
const addressBytes = 16 * mib

// gpu is the part of a GPU that a point uses.
type gpu interface {
	cuda.Machine
	DeviceSync() error
	LinearOpen(path string) error
	Bench(cuda.Bench) (milliseconds []float64, err error)
	BenchOverlapped(cuda.Bench, ...cuda.Operation) (
		milliseconds []float64, overlapMs float64, runs int, err error)
}

// newLibraryBench allocates the memory of the library's GPU.
func newLibraryBench(lib *cuda.Library, info cuda.DeviceInfo, limits Limits) (*gpuBench, error) {
	return newGPUBench(func(f func(gpu) error) error {
		return lib.Do(func(s *cuda.Session) error { return f(s) })
	}, info, limits)
}

// newGPUBench allocates a GPU's memory for the limits of the plan.
func newGPUBench(on func(func(gpu) error) error, info cuda.DeviceInfo, limits Limits) (
	*gpuBench, error) {
	g := &gpuBench{
		on: on, info: info, slabBytes: min(limits.DeviceBytes, mostDeviceBytes),
		savers: map[int64]cuda.Saver{},
		rounds: map[roundsKey][][]timedLayers{},
	}
	return g, on(func(s gpu) (err error) {
		if g.slab, err = s.DeviceAlloc(g.slabBytes); err != nil {
			return fmt.Errorf("%s of device memory: %w", size(g.slabBytes), err)
		}
		g.addresses, err = s.HostAlloc(addressBytes, cuda.DriverPages)
		return err
	})
}

// Close frees all memory.
func (g *gpuBench) Close() error {
	return g.on(func(s gpu) error {
		errs := []error{s.DeviceSync()}
		for _, saver := range g.savers {
			errs = append(errs, s.SaverDestroy(saver))
		}
		for _, m := range append(g.pool.segments, g.addresses) {
			errs = append(errs, s.HostFree(m))
		}
		return errors.Join(append(errs, s.DeviceFree(g.slab))...)
	})
}

// Prepare implements Bench.
func (g *gpuBench) Prepare(p Point) (Timed, error) {
	g.used, g.addressed = 0, 0
	if p.Probe != g.warm {
		g.warm = ""
	}
	g.r = rand.New(rand.NewPCG(hash(p.Key()), 1))
	probe := probeOf(p.Probe)
	if probe == nil {
		return nil, fmt.Errorf("%w: no such probe", ErrSkip)
	}
	if probe.serve != nil {
		return probe.serve(g, p)
	}
	return g.ready(p, probe)
}

// work is what a point times, and the check of one result; either may be empty after an error.
type work struct {
	calls    []cuda.Operation   // of a sample
	rotation [][]cuda.Operation // replaces calls: each sample runs the next of these lists
	next     int                // of rotation
	overlap  []cuda.Operation   // runs without pause on a second thread
	verify   func()             // its error is the gpuRun's
	// each converts a sample, and the mean time of an overlapping run, into seconds. With nil, the
	// sample is the time.
	each func(sample, overlap float64) float64
}

// with appends other work.
func (w *work) with(other *work) *work {
	return &work{calls: append(w.calls, other.calls...), verify: both(w.verify, other.verify)}
}

func both(a, b func()) func() {
	return func() { a(); b() }
}

// ready prepares a point, verifies one result and runs its calls until the card has settled.
func (g *gpuBench) ready(p Point, probe *Probe) (Timed, error) {
	var w *work
	bench := cuda.Bench{Clock: probe.clock, FlushL2: probe.flush}
	err := g.do(func(g *gpuRun) {
		w = probe.setup(g, p)
		g.sync() // streams of the calls do not wait for the one that filled their memory
		if g.err != nil || w.verify == nil {
			return // nothing but time comes of an empty kernel
		}
		if w.verify(); g.err != nil {
			g.err = fmt.Errorf("wrong result, so nothing was timed: %w", g.err)
		}
		settle := g.warmUp(probe)
		for from := time.Now(); g.err == nil && time.Since(from) < settle; {
			_, g.err = w.run(g.s, bench, 4, 1)
		}
	})
	if errors.Is(err, cuda.Unsupported) {
		return nil, fmt.Errorf("%w: %w", ErrSkip, err)
	}
	if err != nil {
		return nil, err
	}
	return func(warmup, repeats int) (samples []float64, err error) {
		err = g.on(func(s gpu) error {
			samples, err = w.run(s, bench, warmup, repeats)
			return err
		})
		return samples, err
	}, nil
}

// run returns one sample per repeat, in seconds.
func (w *work) run(s gpu, b cuda.Bench, warmup, repeats int) (samples []float64, err error) {
	var overlapMs float64
	b.Calls, b.Warmup, b.Repeats = w.calls, warmup, repeats
	switch {
	case w.rotation != nil:
		samples, err = w.rotate(s, b)
	case len(w.overlap) > 0:
		samples, overlapMs, _, err = s.BenchOverlapped(b, w.overlap...)
	default:
		samples, err = s.Bench(b)
	}
	for i := range samples {
		samples[i] *= 1e-3
		if w.each != nil {
			samples[i] = w.each(samples[i], overlapMs*1e-3)
		}
	}
	return samples, err
}

// rotate times one part of the rotation per sample. The next call continues with the next part.
func (w *work) rotate(s gpu, b cuda.Bench) (samples []float64, err error) {
	warmup, all := b.Warmup, b.Warmup+b.Repeats
	b.Warmup, b.Repeats = 0, 1
	for i := range all {
		b.Calls = w.rotation[w.next%len(w.rotation)]
		w.next++
		one, err := s.Bench(b)
		if err != nil {
			return nil, err
		}
		if i >= warmup {
			samples = append(samples, one...)
		}
	}
	return samples, nil
}
