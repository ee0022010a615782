package calibrate

import (
	"errors"
	"fmt"
	"github.com/sparseserve/sparseserve/cuda"
	"math/rand/v2"
	"time"
	"unsafe"
)

// rig is the Bench that runs the library's kernels on a GPU. It belongs to one
// goroutine. Memory of a point is taken from one slab of device memory and one
// pinned page of addresses, both given anew at the next point; the host pool
// stays and only grows.
type gpuBench struct {
	lib   *cuda.Library
	info  cuda.DeviceInfo
	layer *cuda.LayerProbe

	slab      cuda.Ptr
	slabBytes int64
	used      int64
	notes     cuda.HostMemory // pinned, for address arrays of the memcpy forms
	noted     int64
	pool      hostPool
	savers    map[int64]cuda.Saver
	r         *rand.Rand
	warm      string // the probe that kept the card busy last
	prepared  map[string]uint64
	drains    map[drainKey]drainResult
	trains    map[trainKey][][]trainGroup
	// spareThreads scatter where other threads have work too.
	spareThreads int64
}

// settled is enough for the clocks of a card; following, for those of a card
// that has just run the same at another size.
const (
	settled   = 250 * time.Millisecond
	following = 100 * time.Millisecond
)

// settling is how long a point's calls run before they are timed.
func (g *gpuBench) settling(p Point) time.Duration {
	warm := g.warm == p.Probe
	g.warm = p.Probe
	if warm {
		return following
	}
	return settled
}

// Bytes of the pinned address arrays: two of the most blocks of a point.
const notesBytes = 16 * mib

// newGPUBench takes the GPU's memory. limits is what the plan was made for.
func newGPUBench(lib *cuda.Library, info cuda.DeviceInfo, limits Limits) (*gpuBench, error) {
	g := &gpuBench{lib: lib, info: info, savers: map[int64]cuda.Saver{}, prepared: map[string]uint64{}, drains: map[drainKey]drainResult{}, trains: map[trainKey][][]trainGroup{}, slabBytes: min(limits.DeviceBytes, mostDeviceBytes), spareThreads: int64(max(1, limits.Threads*3/4))}
	var err error
	if g.layer, err = lib.LayerProbe(); err != nil {
		return nil, err
	}
	return g, lib.Do(func(s *cuda.Session) error {
		var err error
		if g.slab, err = s.DeviceAlloc(g.slabBytes); err != nil {
			return fmt.Errorf("%s of device memory: %w", size(g.slabBytes), err)
		}
		g.notes, err = s.HostAlloc(notesBytes, cuda.DriverPages)
		return err
	})
}

// Close gives everything back.
func (g *gpuBench) Close() error {
	return g.lib.Do(func(s *cuda.Session) error {
		errs := []error{s.DeviceSync()}
		for _, saver := range g.savers {
			errs = append(errs, s.SaverDestroy(saver))
		}
		for _, m := range append(g.pool.segments, g.notes) {
			errs = append(errs, s.HostFree(m))
		}
		return errors.Join(append(errs, s.DeviceFree(g.slab))...)
	})
}

// setup is a point made ready: what to time, and a check of one result.
type setup struct {
	bench  cuda.Bench
	turns  []cuda.Operation // instead of the bench's calls, one a sample, one after another
	beside []cuda.Operation // runs without pause on a second thread
	turn   int              // of the next sample
	layers *cuda.Layers     // instead of bench
	verify func(s *cuda.Session) error
	// each turns a sample, and the mean time of a run beside it, into seconds;
	// nil: the sample is the time.
	each func(sample, beside float64) float64
	// settle is how long the calls run before the first sample: a card under
	// load clocks lower than one that was idle, and serving is load.
	settle time.Duration
}

func (t *setup) run(s *cuda.Session, layer *cuda.LayerProbe, warmup, repeats int) ([]float64, error) {
	var samples []float64
	var besideMs float64
	var err error
	b := t.bench
	b.Warmup, b.Repeats = warmup, repeats
	switch {
	case t.turns != nil:
		samples, err = t.inTurn(s, warmup, repeats)
	case t.layers != nil:
		l := *t.layers
		l.Warmup, l.Repeats = warmup, repeats
		samples, err = layer.Bench(s, l)
	case len(t.beside) > 0:
		samples, besideMs, _, err = s.BenchOverlapped(b, t.beside...)
	default:
		samples, err = s.Bench(b)
	}
	for i := range samples {
		samples[i] *= 1e-3
		if t.each != nil {
			samples[i] = t.each(samples[i], besideMs*1e-3)
		}
	}
	return samples, err
}

// inTurn times each of turns once, begins again where they end, and goes on with the
// next when it is called again.
func (t *setup) inTurn(s *cuda.Session, warmup, repeats int) (samples []float64, err error) {
	for i := range warmup + repeats {
		b := t.bench
		b.Calls, b.Repeats = t.turns[t.turn%len(t.turns):][:1], 1
		t.turn++
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

// device takes device memory until the next point.
func (g *gpuBench) device(bytes int64) (cuda.Ptr, error) {
	at := g.used
	g.used += (max(bytes, 16) + 255) / 256 * 256
	if g.used > g.slabBytes {
		return 0, fmt.Errorf("%w: more than %s of device memory", ErrSkip, size(g.slabBytes))
	}
	return g.slab + cuda.Ptr(at), nil
}

// random takes device memory of count fp16 values in (-1, 1).
func (g *gpuBench) random(s *cuda.Session, count int64) (cuda.Ptr, error) {
	count += count % 2
	p, err := g.device(2 * count)
	if err != nil {
		return 0, err
	}
	return p, s.Launch(&cuda.FillArgs{Dst: p, Count: count, Seed: g.r.Uint64(), Scale: 1}, 0)
}

// poisoned takes device memory of NaN, for outputs.
func (g *gpuBench) poisoned(s *cuda.Session, bytes int64) (cuda.Ptr, error) {
	return g.filled(s, bytes, 0xff)
}

func (g *gpuBench) zeros(s *cuda.Session, bytes int64) (cuda.Ptr, error) {
	return g.filled(s, bytes, 0)
}

func (g *gpuBench) filled(s *cuda.Session, bytes int64, value int32) (cuda.Ptr, error) {
	p, err := g.device(bytes)
	if err != nil {
		return 0, err
	}
	return p, s.Launch(&cuda.MemsetArgs{Dst: p, Bytes: max(bytes, 16), Value: value}, 0)
}

// upload takes device memory with the given values.
func upload[T any](g *gpuBench, s *cuda.Session, data []T) (cuda.Ptr, error) {
	p, err := g.device(int64(len(data)) * int64(unsafe.Sizeof(*new(T))))
	if err != nil {
		return 0, err
	}
	return p, cuda.Upload(s, p, data)
}

// note takes pinned memory with the given addresses.
func (g *gpuBench) note(addresses []cuda.Ptr) (cuda.Ptr, error) {
	at := g.noted
	g.noted += int64(len(addresses)+1) * 8
	if g.noted > notesBytes {
		return 0, fmt.Errorf("more than %s of address arrays", size(notesBytes))
	}
	copy(cuda.Slice[cuda.Ptr](g.notes)[at/8:], addresses)
	return g.notes.Ptr() + cuda.Ptr(at), nil
}

// saver returns the saver with a number of threads.
func (g *gpuBench) saver(s *cuda.Session, threads int64) (cuda.Saver, error) {
	if saver, ok := g.savers[threads]; ok {
		return saver, nil
	}
	// The staging buffers of the live device: what FlashD2H is fastest with.
	const chunk, stages = 8 * mib, 8
	saver, err := s.SaverCreate(int(threads), chunk, stages)
	if err != nil {
		return 0, err
	}
	for n, old := range g.savers { // idle threads of another saver may spin
		if err := s.SaverDestroy(old); err != nil {
			return 0, err
		}
		delete(g.savers, n)
	}
	g.savers[threads] = saver
	return saver, nil
}

// Prepare implements Bench.
func (g *gpuBench) Prepare(p Point) (Timed, error) {
	g.used, g.noted = 0, 0
	if p.Probe != g.warm {
		g.warm = ""
	}
	g.prepared[p.Key()]++ // another visit finds its blocks elsewhere
	g.r = rand.New(rand.NewPCG(hash(p.Key()), g.prepared[p.Key()]))
	probe := probeOf(p.Probe)
	if probe == nil {
		return nil, fmt.Errorf("%w: no such probe", ErrSkip)
	}
	return probe.cost.prepare(g, p)
}

// ready sets a point up, verifies one result and runs its calls until the card has settled.
func (g *gpuBench) ready(p Point, setUp func(*cuda.Session, Point) (*setup, error)) (Timed, error) {
	var ready *setup
	err := g.lib.Do(func(s *cuda.Session) error {
		var err error
		if ready, err = setUp(s, p); err != nil {
			return err
		}
		if err := s.DeviceSync(); err != nil { // streams of the calls do not wait for the one that filled their memory
			return err
		}
		if ready.verify == nil {
			return nil // nothing but time comes of an empty kernel
		}
		if err = ready.verify(s); err != nil {
			return fmt.Errorf("wrong result, so nothing was timed: %w", err)
		}
		for from := time.Now(); err == nil && time.Since(from) < ready.settle; {
			_, err = ready.run(s, g.layer, 4, 1)
		}
		return err
	})
	if errors.Is(err, cuda.Unsupported) {
		return nil, fmt.Errorf("%w: %w", ErrSkip, err)
	}
	if err != nil {
		return nil, err
	}
	return func(warmup, repeats int) (samples []float64, err error) {
		err = g.lib.Do(func(s *cuda.Session) error {
			samples, err = ready.run(s, g.layer, warmup, repeats)
			return err
		})
		return samples, err
	}, nil
}

// setter takes memory for arguments until one fails.
func (g *gpuBench) setter(err *error) func(*cuda.Ptr, func() (cuda.Ptr, error)) {
	return func(p *cuda.Ptr, get func() (cuda.Ptr, error)) {
		if *err == nil {
			*p, *err = get()
		}
	}
}
