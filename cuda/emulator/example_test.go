package emulator_test

import (
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

// A late machine shows a missing wait: what is read before it is not yet computed.
func ExampleMachine() {
	m := emulator.New(emulator.Config{Late: true})
	defer m.Close()
	x, w, y := values(m, 1, 2), values(m, 10, 1), values(m, 0)
	op := &cuda.LinearArgs{X: x.Ptr(), W: w.Ptr(), Y: y.Ptr(), Tokens: 1, In: 2, Out: 1}
	if err := m.Launch(op, 0); err != nil {
		fmt.Println(err)
	}
	fmt.Println("before the wait:", cuda.Slice[cuda.Half](y)[0].Float())
	if err := m.StreamSync(0); err != nil {
		fmt.Println(err)
	}
	fmt.Println("after it:", cuda.Slice[cuda.Half](y)[0].Float())
	// Output:
	// before the wait: 0
	// after it: 12
}

// An access that a GPU might survive with a wrong answer is an error that names the argument.
func ExampleFault() {
	m := emulator.New(emulator.Config{})
	defer m.Close()
	p, err := m.DeviceAlloc(64)
	if err != nil {
		fmt.Println(err)
	}
	var fault *emulator.Fault
	fmt.Println(errors.As(m.Launch(&cuda.MemsetArgs{Dst: p, Bytes: 65}, 0), &fault))
	fmt.Println(fault.Arg, fault.Bytes, "bytes")
	// Output:
	// true
	// Dst 65 bytes
}

// values returns pinned memory with fp16 values.
func values(m cuda.Machine, of ...float64) cuda.HostMemory {
	memory, err := m.HostAlloc(int64(2*len(of)), cuda.DriverPages)
	if err != nil {
		panic(err)
	}
	for i, v := range of {
		cuda.Slice[cuda.Half](memory)[i] = cuda.HalfOf(v)
	}
	return memory
}
