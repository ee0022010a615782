package calibrate

import (
	"unsafe"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

// emulated is a GPU in Go for set-ups and their checks. All calls take 1 ms.
type emulated struct {
	*emulator.Machine
	known   map[cuda.Ptr]int64 // bytes of allocations
	staging cuda.HostMemory
	wrong   func(cuda.Operation) bool // operations that are not carried out

}

const stagingBytes = 16 * mib

func newEmulated(c emulator.Config) *emulated {
	e := &emulated{Machine: emulator.New(c), known: map[cuda.Ptr]int64{}}
	staging, err := e.HostAlloc(stagingBytes, cuda.DriverPages)
	must(err)
	e.staging = staging
	return e
}

func (e *emulated) DeviceAlloc(bytes int64) (cuda.Ptr, error) {
	p, err := e.Machine.DeviceAlloc(bytes)
	e.known[p] = bytes
	return p, err
}

func (e *emulated) HostAlloc(bytes int64, pages cuda.HostPages) (cuda.HostMemory, error) {
	m, err := e.Machine.HostAlloc(bytes, pages)
	e.known[m.Ptr()] = bytes
	return m, err
}

func (e *emulated) knows(p cuda.Ptr) bool {
	for start, bytes := range e.known {
		if p >= start && p < start+cuda.Ptr(bytes) {
			return true
		}
	}
	return false
}

// Launch implements cuda.Machine; copies from and to Go's memory go through pinned memory.
func (e *emulated) Launch(op cuda.Operation, on cuda.Stream) error {
	if e.wrong != nil && e.wrong(op) {
		return nil
	}
	m, ok := op.(*cuda.MemcpyArgs)
	switch {
	case !ok || e.knows(m.Src) && e.knows(m.Dst):
		return e.Machine.Launch(op, on)
	case e.knows(m.Src):
		err := e.Machine.Launch(&cuda.MemcpyArgs{Dst: e.staging.Ptr(), Src: m.Src, Bytes: m.Bytes}, 0)
		copy(goMemory(m.Dst, m.Bytes), e.staging.Bytes())
		return err
	default:
		copy(e.staging.Bytes(), goMemory(m.Src, m.Bytes))
		return e.Machine.Launch(&cuda.MemcpyArgs{Dst: m.Dst, Src: e.staging.Ptr(), Bytes: m.Bytes}, 0)
	}
}

func goMemory(p cuda.Ptr, bytes int64) []byte {
	address := *(*unsafe.Pointer)(unsafe.Pointer(&p))
	return unsafe.Slice((*byte)(address), bytes)
}

func (e *emulated) LinearOpen(string) error { return nil }

func (e *emulated) Bench(b cuda.Bench) ([]float64, error) {
	for _, op := range b.Calls[:1] {
		if err := e.Launch(op, 0); err != nil {
			return nil, err
		}
	}
	return filled(b.Repeats, func(int) float64 { return 1 }), nil
}

func (e *emulated) BenchOverlapped(b cuda.Bench, _ ...cuda.Operation) ([]float64, float64,
	int, error) {
	samples, err := e.Bench(b)
	return samples, 1, 1, err
}
