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

// settled is long enough for a card's clock to settle; following is long enough on a card that has
// just run the same calls at another size.
const (
	settled   = 250 * time.Millisecond
	following = 100 * time.Millisecond
)

// settling returns how long a point's calls run before they are timed.
func (g *gpuBench) settling(p Point) time.Duration {
	warm := g.warm == p.Probe
	g.warm = p.Probe
	if warm {
		return following
	}
	return settled
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
	return g.ready(p, probe.setup)
}

// setup is a prepared point: the work to time, and a check of one result.
type setup struct {
	bench    cuda.Bench
	rotation [][]cuda.Operation // instead of the bench's calls: the calls of a sample, in rotation
	next     int                // of rotation
	overlap  []cuda.Operation   // runs without pause on a second thread
	verify   func()             // its error is the gpuRun's
	// each converts a sample, and the mean time of an overlapping run, into seconds. With nil, the
	// sample is the time.
	each func(sample, overlap float64) float64
	// settle is how long the calls run before the first sample. A card under load, as in serving, has
	// a lower clock than an idle one.
	settle time.Duration
}

// ready prepares a point, verifies one result and runs its calls until the card has settled.
func (g *gpuBench) ready(p Point, setUp func(*gpuRun, Point) *setup) (Timed, error) {
	var t *setup
	err := g.do(func(g *gpuRun) {
		t = setUp(g, p)
		g.sync() // streams of the calls do not wait for the one that filled their memory
		if g.err != nil || t.verify == nil {
			return // nothing but time comes of an empty kernel
		}
		if t.verify(); g.err != nil {
			g.err = fmt.Errorf("wrong result, so nothing was timed: %w", g.err)
		}
		for from := time.Now(); g.err == nil && time.Since(from) < t.settle; {
			_, g.err = t.run(g.s, 4, 1)
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
			samples, err = t.run(s, warmup, repeats)
			return err
		})
		return samples, err
	}, nil
}

// run returns one sample per repeat, in seconds.
func (t *setup) run(s gpu, warmup, repeats int) (samples []float64, err error) {
	var overlapMs float64
	b := t.bench
	b.Warmup, b.Repeats = warmup, repeats
	switch {
	case t.rotation != nil:
		samples, err = t.rotate(s, warmup, repeats)
	case len(t.overlap) > 0:
		samples, overlapMs, _, err = s.BenchOverlapped(b, t.overlap...)
	default:
		samples, err = s.Bench(b)
	}
	for i := range samples {
		samples[i] *= 1e-3
		if t.each != nil {
			samples[i] = t.each(samples[i], overlapMs*1e-3)
		}
	}
	return samples, err
}

// rotate times one part of the rotation per sample. The next call continues with the next part.
func (t *setup) rotate(s gpu, warmup, repeats int) (samples []float64, err error) {
	for i := range warmup + repeats {
		b := t.bench
		b.Calls, b.Repeats = t.rotation[t.next%len(t.rotation)], 1
		t.next++
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
