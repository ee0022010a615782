package queue_test

import (
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live/queue"
)

// Operations are launched by a thread of their own, in order. A failure comes with the next call
// that waits, and names the operation.
func ExampleQueue() {
	m := emulator.New(emulator.Config{})
	defer m.Close()
	var calls int64
	q, err := queue.New(m, &calls)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	p, err := m.DeviceAlloc(64)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q.Launch(&cuda.MemsetArgs{Dst: p, Bytes: 64}, 0), q.StreamSync(0))
	q.Launch(&cuda.MemsetArgs{Dst: p, Bytes: 65}, 0)
	var fault *emulator.Fault
	fmt.Println(errors.As(q.StreamSync(0), &fault), fault.Arg)
	// Output:
	// <nil> <nil>
	// true Dst
}
