package cuda

import (
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Operation is a call that can be timed: one of the argument structs, or EmptyArgs.
type Operation interface {
	operation() (op int32, args unsafe.Pointer)
}

// Forms of BlocksArgs, MemcpyArgs and RopeArgs that Bench times; the struct is the same, the engine differs.
type (
	// EmptyArgs times an empty kernel.
	EmptyArgs struct{}
	// FlashH2DArgs times FlashH2D.
	FlashH2DArgs BlocksArgs
	// GPUScatterArgs times the GPU scatter kernel.
	GPUScatterArgs BlocksArgs
	// MemcpyBlocksArgs times one memcpy a block.
	MemcpyBlocksArgs BlocksArgs
	// MemcpyBatchArgs times the batched memcpy API.
	MemcpyBatchArgs BlocksArgs
	// CarryArgs times the kernel that carries small arrays.
	CarryArgs MemcpyArgs
	// KVWriteArgs times the kernel that writes K and V to their blocks.
	KVWriteArgs RopeArgs
)

// In the order of the header's SS_OP_ constants.
func (a *EmptyArgs) operation() (int32, unsafe.Pointer)        { return 0, unsafe.Pointer(a) }
func (a *MemcpyArgs) operation() (int32, unsafe.Pointer)       { return 1, unsafe.Pointer(a) }
func (a *MemsetArgs) operation() (int32, unsafe.Pointer)       { return 2, unsafe.Pointer(a) }
func (a *FillArgs) operation() (int32, unsafe.Pointer)         { return 3, unsafe.Pointer(a) }
func (a *FlashH2DArgs) operation() (int32, unsafe.Pointer)     { return 4, unsafe.Pointer(a) }
func (a *GPUScatterArgs) operation() (int32, unsafe.Pointer)   { return 5, unsafe.Pointer(a) }
func (a *MemcpyBlocksArgs) operation() (int32, unsafe.Pointer) { return 6, unsafe.Pointer(a) }
func (a *MemcpyBatchArgs) operation() (int32, unsafe.Pointer)  { return 7, unsafe.Pointer(a) }
func (a *SaveArgs) operation() (int32, unsafe.Pointer)         { return 8, unsafe.Pointer(a) }
func (a *DecodeArgs) operation() (int32, unsafe.Pointer)       { return 9, unsafe.Pointer(a) }
func (a *PSAArgs) operation() (int32, unsafe.Pointer)          { return 10, unsafe.Pointer(a) }
func (a *PSAPipelineArgs) operation() (int32, unsafe.Pointer)  { return 11, unsafe.Pointer(a) }
func (a *PrefillArgs) operation() (int32, unsafe.Pointer)      { return 12, unsafe.Pointer(a) }
func (a *DigestArgs) operation() (int32, unsafe.Pointer)       { return 13, unsafe.Pointer(a) }
func (a *ScoresArgs) operation() (int32, unsafe.Pointer)       { return 14, unsafe.Pointer(a) }
func (a *TopKArgs) operation() (int32, unsafe.Pointer)         { return 15, unsafe.Pointer(a) }
func (a *SelectArgs) operation() (int32, unsafe.Pointer)       { return 16, unsafe.Pointer(a) }
func (a *LinearArgs) operation() (int32, unsafe.Pointer)       { return 17, unsafe.Pointer(a) }
func (a *EmbedArgs) operation() (int32, unsafe.Pointer)        { return 18, unsafe.Pointer(a) }
func (a *RMSNormArgs) operation() (int32, unsafe.Pointer)      { return 19, unsafe.Pointer(a) }
func (a *RopeArgs) operation() (int32, unsafe.Pointer)         { return 20, unsafe.Pointer(a) }
func (a *SiluMulArgs) operation() (int32, unsafe.Pointer)      { return 21, unsafe.Pointer(a) }
func (a *ArgmaxArgs) operation() (int32, unsafe.Pointer)       { return 22, unsafe.Pointer(a) }
func (a *CarryArgs) operation() (int32, unsafe.Pointer)        { return 23, unsafe.Pointer(a) }
func (a *LookupArgs) operation() (int32, unsafe.Pointer)       { return 24, unsafe.Pointer(a) }
func (a *TableArgs) operation() (int32, unsafe.Pointer)        { return 25, unsafe.Pointer(a) }
func (a *KVWriteArgs) operation() (int32, unsafe.Pointer)      { return 26, unsafe.Pointer(a) }

// Clock says what a sample is.
type Clock int32

// Clocks of Bench.
const (
	EventClock  Clock = iota // GPU time between two events around the calls
	WallClock                // host time from the call until the GPU is idle; for operations that block
	SubmitClock              // host time of the calls alone
)

// Bench is one timing: its Calls run one after another as one sample.
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
	code, _, _ := purego.SyscallN(s.symbols.bench.address, uintptr(unsafe.Pointer(&c)))
	runtime.KeepAlive(b)
	return float64s(samples), s.result(s.symbols.bench, code)
}

// BenchBeside is Bench while a second thread repeats beside on its own stream; it also returns the mean milliseconds and number of its runs.
func (s *Session) BenchBeside(b Bench, beside ...Operation) (samples []float64, besideMs float64, besideRuns int, err error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	c, raw := b.prepare(&pin)
	calls := pinCalls(&pin, beside)
	var ms float32
	var runs int32
	code, _, _ := purego.SyscallN(s.symbols.benchBeside.address, uintptr(unsafe.Pointer(&c)), uintptr(unsafe.Pointer(unsafe.SliceData(calls))), uintptr(len(calls)),
		uintptr(unsafe.Pointer(&ms)), uintptr(unsafe.Pointer(&runs)))
	runtime.KeepAlive(beside)
	runtime.KeepAlive(b)
	return float64s(raw), float64(ms), int(runs), s.result(s.symbols.benchBeside, code)
}

func (b Bench) prepare(pin *runtime.Pinner) (benchC, []float32) {
	calls := pinCalls(pin, b.Calls)
	samples := make([]float32, max(b.Repeats, 1))
	pin.Pin(&samples[0])
	c := benchC{calls: unsafe.Pointer(unsafe.SliceData(calls)), nCalls: int32(len(calls)), warmup: int32(b.Warmup), repeats: int32(b.Repeats), clock: int32(b.Clock),
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
		if p, ok := o.(*PSAPipelineArgs); ok && p.PSA != nil {
			pin.Pin(p.PSA)
		}
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
