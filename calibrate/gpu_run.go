package calibrate

import (
	"fmt"
	"unsafe"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// gpuRun is a gpuBench on its GPU's thread. It keeps its first error: later calls do nothing and
// return zeros, so that set-ups and checks need no branches.
type gpuRun struct {
	*gpuBench
	s   gpu
	err error
}

// do runs f on the GPU's thread and returns its error.
func (g *gpuBench) do(f func(*gpuRun)) error {
	return g.on(func(s gpu) error {
		run := &gpuRun{gpuBench: g, s: s}
		f(run)
		return run.err
	})
}

// try calls f unless there is an error.
func (g *gpuRun) try(f func() error) {
	if g.err == nil {
		g.err = f()
	}
}

// fail sets the error unless there is one.
func (g *gpuRun) fail(format string, values ...any) {
	g.try(func() error { return fmt.Errorf(format, values...) })
}

func (g *gpuRun) sync() { g.try(g.s.DeviceSync) }

func (g *gpuRun) launch(ops ...cuda.Operation) {
	for _, op := range ops {
		g.try(func() error { return g.s.Launch(op, 0) })
	}
}

// model returns the model of a shape, or an empty model after an error.
func (g *gpuRun) model(shape string) *llm.Model {
	m, err := shapeModel(shape)
	if err != nil {
		g.fail("%w", err)
		return &llm.Model{QHeads: 1, KVHeads: 1, HeadDim: 1}
	}
	return m
}

// device allocates device memory until the next point.
func (g *gpuRun) device(bytes int64) cuda.Ptr {
	at := g.used
	g.used += (max(bytes, 16) + 255) / 256 * 256
	if g.used > g.slabBytes {
		g.fail("%w: more than %s of device memory", ErrSkip, size(g.slabBytes))
		return 0
	}
	return g.slab + cuda.Ptr(at)
}

// random allocates count fp16 values in (-1, 1).
func (g *gpuRun) random(count int64) cuda.Ptr {
	count += count % 2
	p := g.device(2 * count)
	g.launch(&cuda.FillArgs{Dst: p, Count: count, Seed: g.r.Uint64(), Scale: 1})
	return p
}

// poisoned allocates bytes of NaN, for outputs.
func (g *gpuRun) poisoned(bytes int64) cuda.Ptr { return g.filled(bytes, 0xff) }

func (g *gpuRun) zeros(bytes int64) cuda.Ptr { return g.filled(bytes, 0) }

func (g *gpuRun) filled(bytes int64, value int32) cuda.Ptr {
	p := g.device(bytes)
	g.launch(&cuda.MemsetArgs{Dst: p, Bytes: max(bytes, 16), Value: value})
	return p
}

// workspace allocates the workspace of an operation.
func (g *gpuRun) workspace(op cuda.Operation) cuda.Ptr {
	var bytes int64
	g.try(func() (err error) { bytes, err = g.s.Workspace(op); return err })
	return g.zeros(bytes)
}

// upload allocates device memory with the given values.
func upload[T any](g *gpuRun, data []T) cuda.Ptr {
	p := g.device(int64(len(data)) * int64(unsafe.Sizeof(*new(T))))
	g.try(func() error { return cuda.Upload(g.s, p, data) })
	return p
}

// pin allocates pinned memory with the given addresses.
func (g *gpuRun) pin(addresses []cuda.Ptr) cuda.Ptr {
	at := g.addressed
	g.addressed += int64(len(addresses)+1) * 8
	if g.addressed > addressBytes {
		g.fail("more than %s of address arrays", size(addressBytes))
		return 0
	}
	copy(cuda.Slice[cuda.Ptr](g.addresses)[at/8:], addresses)
	return g.addresses.Ptr() + cuda.Ptr(at)
}

// saver returns the saver with a number of threads.
func (g *gpuRun) saver(threads int64) (saver cuda.Saver) {
	if saver, ok := g.savers[threads]; ok {
		return saver
	}
	// The staging buffers of the live device, with which FlashD2H is fastest.
	const chunk, stages = 8 * mib, 8
	g.try(func() (err error) {
		saver, err = g.s.SaverCreate(int(threads), chunk, stages)
		return err
	})
	for n, old := range g.savers { // idle threads of another saver may spin
		g.try(func() error { return g.s.SaverDestroy(old) })
		delete(g.savers, n)
	}
	if g.err == nil {
		g.savers[threads] = saver
	}
	return saver
}
