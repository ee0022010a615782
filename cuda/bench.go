package cuda

import (
	"runtime"
	"unsafe"
)

// Clock selects what a sample times.
type Clock int32

// Clocks of Bench.
const (
	EventClock Clock = iota // GPU time between two events around the calls
	// host time from the call until the GPU is idle; for operations that block
	WallClock
	SubmitClock // host time of the calls, without the wait
)

// Bench is one timing: its Calls run in sequence as one sample.
type Bench struct {
	Calls           []Operation
	Warmup, Repeats int
	Clock           Clock
	FlushL2         bool // fill the L2 with other data before each sample, outside the timed span
}

type callC struct {
	op   int32
	args unsafe.Pointer
}

type benchC struct {
	calls           unsafe.Pointer
	nCalls          int32
	warmup, repeats int32
	clock           int32
	flush           int32
	samples         unsafe.Pointer
}

// Bench returns every sample in milliseconds.
func (s *Session) Bench(b Bench) ([]float64, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	c, samples := b.prepare(&pin)
	err := s.call("ss_bench", uintptr(unsafe.Pointer(&c)))
	return float64s(samples), err
}

// BenchOverlapped is Bench while a second thread repeats other operations on its own stream; it
// also returns the mean milliseconds and number of its runs.
func (s *Session) BenchOverlapped(b Bench, others ...Operation) (samples []float64, otherMs float64,
	otherRuns int, err error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	c, raw := b.prepare(&pin)
	calls := pinCalls(&pin, others)
	var ms float32
	var runs int32
	err = s.call("ss_bench_overlapped", uintptr(unsafe.Pointer(&c)),
		uintptr(unsafe.Pointer(unsafe.SliceData(calls))), uintptr(len(calls)),
		uintptr(unsafe.Pointer(&ms)), uintptr(unsafe.Pointer(&runs)))
	return float64s(raw), float64(ms), int(runs), err
}

func (b Bench) prepare(pin *runtime.Pinner) (benchC, []float32) {
	calls := pinCalls(pin, b.Calls)
	samples := make([]float32, max(b.Repeats, 1))
	pin.Pin(&samples[0])
	c := benchC{calls: unsafe.Pointer(unsafe.SliceData(calls)), nCalls: int32(len(calls)),
		warmup: int32(b.Warmup), repeats: int32(b.Repeats), clock: int32(b.Clock),
		samples: unsafe.Pointer(&samples[0])}
	if b.FlushL2 {
		c.flush = 1
	}
	return c, samples
}

func pinCalls(pin *runtime.Pinner, operations []Operation) []callC {
	calls := make([]callC, len(operations))
	for i, o := range operations {
		op, args := o.operation()
		pin.Pin(args)
		calls[i] = callC{op, args}
	}
	if len(calls) > 0 {
		pin.Pin(&calls[0])
	}
	return calls
}

func float64s(samples []float32) []float64 {
	out := make([]float64, len(samples))
	for i, x := range samples {
		out[i] = float64(x)
	}
	return out
}
