package emulator

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/sparseserve/sparseserve/cuda"
)

// Fault is an access on which a GPU would fail or return a wrong answer. errors.Is(err,
// cuda.Failed) holds.
type Fault struct {
	Call    string // as of cuda.Error
	Arg     string // field of the argument struct
	Address cuda.Ptr
	Bytes   int64
	Why     string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s: %s: %d bytes at %#x: %s", f.Call, f.Arg, f.Bytes, uintptr(f.Address),
		f.Why)
}

// Is reports whether target is the code of a failed kernel.
func (f *Fault) Is(target error) bool { return target == error(cuda.Failed) }

// access is one operation's view of the memory. Its methods panic with a *Fault or
// *cuda.Error, which guard returns as the operation's error.
type access struct {
	*memory
	call string
	host bool // the CPU's: device memory is out of reach
}

func (m *Machine) guard(call string, f func(*access) error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Fault:
			err = r
		case *cuda.Error:
			err = r
		default:
			panic(r)
		}
	}()
	return f(&access{memory: &m.memory, call: call})
}

// onHost returns the same operation's access from the CPU.
func (a access) onHost() *access {
	a.host = true
	return &a
}

func (a *access) fault(arg string, p cuda.Ptr, bytes int64, format string, args ...any) {
	panic(&Fault{Call: a.call, Arg: arg, Address: p, Bytes: bytes, Why: fmt.Sprintf(format,
		args...)})
}

// bytes returns n bytes that start first bytes after p, in the allocation that p points into: an
// out-of-range index never accesses another allocation.
func (a *access) bytes(arg string, p cuda.Ptr, first, n int64) []byte {
	if n == 0 {
		return nil
	}
	r := a.find(p)
	if r == nil {
		a.fault(arg, p, n, "no allocation has this address")
	}
	if end := r.at + cuda.Ptr(len(r.mapped)); p >= end {
		a.fault(arg, p, n, "no allocation has this address; the next below ends %d bytes before it",
			p-end)
	}
	from, size := int64(p-r.at)+first, int64(len(r.data))
	switch p += cuda.Ptr(first); {
	case r.freed:
		a.fault(arg, p, n, "the allocation was freed")
	case from < 0:
		a.fault(arg, p, n, "%d bytes before the start of %d bytes of %v memory", -from, size, r.on)
	case n < 0 || n > size-from:
		a.fault(arg, p, n, "%d bytes past the end of %d bytes of %v memory", from+n-size, size,
			r.on)
	case a.host && r.on == onDevice:
		a.fault(arg, p, n, "the CPU does not reach device memory")
	}
	return r.data[from : from+n : from+n]
}

// view returns values first to first + n of an array at p, which is a multiple of their size.
func view[T any](a *access, arg string, p cuda.Ptr, first, n int) []T {
	if n == 0 {
		return nil
	}
	var one T
	size := int64(unsafe.Sizeof(one))
	if most := math.MaxInt64 / 4 / size; int64(n) < 0 || int64(n) > most || int64(first) > most ||
		int64(first) < -most {
		a.fault(arg, p, size, "%d values from value %d", n, first)
	}
	a.aligned(arg, p, size)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(a.bytes(arg, p, int64(first)*size,
		int64(n)*size)))), n)
}

// at returns value i of an array at p.
func at[T any](a *access, arg string, p cuda.Ptr, i int) *T { return &view[T](a, arg, p, i, 1)[0] }

func (a *access) aligned(arg string, p cuda.Ptr, to int64) {
	if int64(p)%to != 0 {
		a.fault(arg, p, to, "the address is no multiple of %d", to)
	}
}

// halves returns fp16 values first to first + n of a tensor at p, both at multiples of 16 bytes:
// kernels read 16 bytes at a time.
func (a *access) halves(arg string, p cuda.Ptr, first, n int) []cuda.Half {
	a.aligned(arg, p+cuda.Ptr(2*first), 16)
	return view[cuda.Half](a, arg, p, first, n)
}

// tensor returns the values of halves as numbers.
func (a *access) tensor(arg string, p cuda.Ptr, first, n int) []float64 {
	return cuda.Floats(a.halves(arg, p, first, n))
}

// store rounds x to fp16.
func store(to []cuda.Half, x []float64) {
	for i, v := range x {
		to[i] = cuda.HalfOf(v)
	}
}
