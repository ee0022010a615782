package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"sparseserve/cuda"
)

// bench is the session, the memory of the running section, and the reference figures of the first one.
type bench struct {
	*cuda.Session
	info   cuda.DeviceInfo
	device []cuda.Ptr
	host   []cuda.HostMemory
	r      *rand.Rand
	warm   bool // samples find in the L2 what the last one left

	h2d, d2h, copy float64 // GB/s of large copies; copy counts bytes read plus bytes written
}

// timing is the median and the 5th and 95th percentile of the samples, in milliseconds.
type timing struct{ median, low, high float64 }

func summary(samples []float64) timing {
	slices.Sort(samples)
	at := func(q float64) float64 { return samples[int(q*float64(len(samples)-1)+0.5)] }
	return timing{at(0.5), at(0.05), at(0.95)}
}

// time measures GPU time of the calls as one sample.
func (b *bench) time(repeats int, calls ...cuda.Operation) (timing, error) {
	return b.timeBy(cuda.EventClock, repeats, calls...)
}

func (b *bench) timeBy(clock cuda.Clock, repeats int, calls ...cuda.Operation) (timing, error) {
	samples, err := b.Bench(cuda.Bench{Calls: calls, Warmup: max(2, repeats/10), Repeats: repeats, Clock: clock, FlushL2: !b.warm})
	if err != nil {
		return timing{}, err
	}
	return summary(samples), nil
}

// row prints one line: what, the time, and a rate or a ratio.
func row(what string, t timing, format string, values ...any) {
	fmt.Printf("  %-58s %10.4f ms [%.4f, %.4f]  %s\n", what, t.median, t.low, t.high, fmt.Sprintf(format, values...))
}

// gbs is bytes in t as GB/s.
func gbs(bytes int64, t timing) float64 { return float64(bytes) / t.median / 1e6 }

func (b *bench) alloc(bytes int64) (cuda.Ptr, error) {
	p, err := b.DeviceAlloc(bytes)
	if err == nil {
		b.device = append(b.device, p)
	}
	return p, err
}

func (b *bench) zeros(bytes int64) (cuda.Ptr, error) {
	p, err := b.alloc(bytes)
	if err != nil {
		return 0, err
	}
	return p, b.Launch(&cuda.MemsetArgs{Dst: p, Bytes: bytes}, 0)
}

// random returns device memory with count fp16 values in (-1, 1).
func (b *bench) random(count int64) (cuda.Ptr, error) {
	p, err := b.alloc(2 * count)
	if err != nil {
		return 0, err
	}
	return p, b.Launch(&cuda.FillArgs{Dst: p, Count: count, Seed: b.rand().Uint64(), Scale: 1}, 0)
}

func (b *bench) pinned(bytes int64, pages cuda.HostPages) (cuda.HostMemory, error) {
	m, err := b.HostAlloc(bytes, pages)
	if err == nil {
		b.host = append(b.host, m)
	}
	return m, err
}

func (b *bench) rand() *rand.Rand {
	if b.r == nil {
		b.r = rand.New(rand.NewPCG(1, 2))
	}
	return b.r
}

func upload[T any](b *bench, data []T) (cuda.Ptr, error) {
	if len(data) == 0 {
		data = make([]T, 1)
	}
	p, err := b.alloc(int64(len(data)) * 8)
	if err != nil {
		return 0, err
	}
	return p, cuda.Upload(b.Session, p, data)
}

func (b *bench) freeAll() error {
	if err := b.DeviceSync(); err != nil {
		return err
	}
	for _, p := range b.device {
		if err := b.DeviceFree(p); err != nil {
			return err
		}
	}
	for _, m := range b.host {
		if err := b.HostFree(m); err != nil {
			return err
		}
	}
	b.device, b.host = nil, nil
	return nil
}
