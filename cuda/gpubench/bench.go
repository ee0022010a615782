package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
)

// bench is the session, the memory of the running section, and the reference rates from the first
// section.
type bench struct {
	*cuda.Session
	device []cuda.Ptr
	host   []cuda.HostMemory
	r      *rand.Rand
	warm   bool // samples find in the L2 what the last one left

	h2d, d2h, copy float64 // GB/s of large copies; copy counts bytes read plus bytes written
}

func newBench(s *cuda.Session, warm bool) *bench {
	return &bench{Session: s, warm: warm, r: rand.New(rand.NewPCG(1, 2))}
}

// failed ends a section.
type failed struct{ error }

// must ends the running section if there is an error.
func must(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		panic(failed{err})
	}
}

// got returns the value of a call that must not fail.
func got[T any](v T, err error) T {
	must(err)
	return v
}

// section runs one section and frees its memory.
func (b *bench) section(s section) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failed:
			err = fmt.Errorf("%s: %w", s.name, r.error)
		default:
			panic(r)
		}
	}()
	fmt.Printf("\n%s\n", s.name)
	s.run(b)
	b.free()
	return nil
}

// free frees all memory.
func (b *bench) free() {
	must(b.DeviceSync())
	for _, p := range b.device {
		must(b.DeviceFree(p))
	}
	for _, m := range b.host {
		must(b.HostFree(m))
	}
	b.device, b.host = nil, nil
}

// timing is the median and the 5th and 95th percentile of the samples, in milliseconds.
type timing struct{ median, low, high float64 }

func summary(samples []float64) timing {
	slices.Sort(samples)
	at := func(q float64) float64 { return samples[int(q*float64(len(samples)-1)+0.5)] }
	return timing{at(0.5), at(0.05), at(0.95)}
}

// time measures GPU time of the calls as one sample.
func (b *bench) time(repeats int, calls ...cuda.Operation) timing {
	return b.timeBy(cuda.EventClock, repeats, calls...)
}

func (b *bench) timeBy(clock cuda.Clock, repeats int, calls ...cuda.Operation) timing {
	return summary(got(b.Bench(cuda.Bench{
		Calls: calls, Warmup: max(2, repeats/10), Repeats: repeats, Clock: clock, FlushL2: !b.warm,
	})))
}

// row prints one line: what, the time, and a rate or a ratio.
func row(what string, t timing, format string, values ...any) {
	fmt.Printf("  %-58s %10.4f ms [%.4f, %.4f]  %s\n",
		what, t.median, t.low, t.high, fmt.Sprintf(format, values...))
}

// gbs is bytes in t as GB/s.
func gbs(bytes int64, t timing) float64 { return float64(bytes) / t.median / 1e6 }

// ofCopy prints one line with the rate, absolute and against the device copy's.
func (b *bench) ofCopy(what string, t timing, bytes int64) {
	rate := gbs(bytes, t)
	row(what, t, "%.2f TB/s, %.3f of the device copy", rate/1e3, rate/b.copy)
}

func (b *bench) alloc(bytes int64) cuda.Ptr {
	p := got(b.DeviceAlloc(bytes))
	b.device = append(b.device, p)
	return p
}

// release frees one allocation.
func (b *bench) release(p cuda.Ptr) {
	must(b.DeviceFree(p))
	b.device = slices.DeleteFunc(b.device, func(q cuda.Ptr) bool { return q == p })
}

func (b *bench) zeros(bytes int64) cuda.Ptr {
	p := b.alloc(bytes)
	must(b.Launch(&cuda.MemsetArgs{Dst: p, Bytes: bytes}, 0))
	return p
}

// random returns device memory with fp16 values in (-1, 1).
func (b *bench) random(values int) cuda.Ptr {
	p := b.alloc(2 * int64(values))
	must(b.Launch(&cuda.FillArgs{Dst: p, Count: int64(values), Seed: b.r.Uint64(), Scale: 1}, 0))
	return p
}

// workspace returns the zeroed scratch memory of an operation.
func (b *bench) workspace(op cuda.Operation) cuda.Ptr { return b.zeros(got(b.Workspace(op))) }

func (b *bench) pinned(bytes int64, pages cuda.HostPages) cuda.HostMemory {
	m := got(b.HostAlloc(bytes, pages))
	b.host = append(b.host, m)
	return m
}

func upload[T any](b *bench, data []T) cuda.Ptr {
	p := b.alloc(int64(len(data)+1) * 8)
	must(cuda.Upload(b.Session, p, data))
	return p
}

// order returns the numbers 0 to n - 1, shuffled.
func (b *bench) order(n int) []int32 {
	order := make([]int32, n)
	for i, x := range b.r.Perm(n) {
		order[i] = int32(x)
	}
	return order
}
