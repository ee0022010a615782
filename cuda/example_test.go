package cuda_test

import (
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

// A program learns what is missing: here the library itself.
func ExampleOpen() {
	_, err := cuda.Open("/nowhere/libsparseserve.so")
	fmt.Println(errors.Is(err, cuda.ErrNoLibrary))
	// Output: true
}

// Operations are launched on streams, of a GPU (*cuda.Session) or of the emulator: y = x w^T.
func ExampleMachine() {
	var m cuda.Machine = emulator.New(emulator.Config{})
	x, w, y := halves(m, 1, 2), halves(m, 10, 1, 0.5, -1), halves(m, 0, 0)
	op := &cuda.LinearArgs{X: x.Ptr(), W: w.Ptr(), Y: y.Ptr(), Tokens: 1, In: 2, Out: 2}
	if err := errors.Join(m.Launch(op, 0), m.StreamSync(0)); err != nil {
		fmt.Println(err)
	}
	for _, v := range cuda.Slice[cuda.Half](y) {
		fmt.Print(v.Float(), " ")
	}
	// A pointer that leads nowhere is found, where a GPU might read something else.
	op = &cuda.LinearArgs{X: x.Ptr(), W: w.Ptr(), Y: y.Ptr(), Tokens: 1, In: 2, Out: 3}
	var fault *emulator.Fault
	fmt.Println(errors.As(m.Launch(op, 0), &fault), fault.Arg)
	// Output: 12 -1.5 true W
}

// halves returns pinned memory with fp16 values, which the machine reads too.
func halves(m cuda.Machine, values ...float64) cuda.HostMemory {
	memory, err := m.HostAlloc(int64(2*len(values)), cuda.DriverPages)
	if err != nil {
		panic(err)
	}
	for i, v := range values {
		cuda.Slice[cuda.Half](memory)[i] = cuda.HalfOf(v)
	}
	return memory
}
