package live_test

import (
	"sync"

	"github.com/sparseserve/sparseserve/cuda"
)

// faulty is a machine whose n-th operation fails, and all after it, as after a fault on a GPU.
type faulty struct {
	cuda.Machine
	mu    sync.Mutex
	left  int // operations until the fault; below 0: none
	count int
	err   error
}

func (f *faulty) op(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if f.err == nil && f.count == f.left {
		f.err = illegalAccess(call)
	}
	return f.err
}

// illegalAccess is the error of a call whose kernel failed.
func illegalAccess(call string) error {
	const text = "an illegal memory access was encountered"
	return &cuda.Error{Call: call, Code: cuda.Failed, Text: text}
}

func (f *faulty) Launch(op cuda.Operation, s cuda.Stream) error {
	if err := f.op(cuda.Function(op)); err != nil {
		return err
	}
	return f.Machine.Launch(op, s)
}

func (f *faulty) EventRecord(e cuda.Event, s cuda.Stream) error {
	if err := f.op("ss_event_record"); err != nil {
		return err
	}
	return f.Machine.EventRecord(e, s)
}

func (f *faulty) StreamWait(s cuda.Stream, e cuda.Event) error {
	if err := f.op("ss_stream_wait"); err != nil {
		return err
	}
	return f.Machine.StreamWait(s, e)
}

func (f *faulty) StreamSync(s cuda.Stream) error {
	if err := f.op("ss_stream_sync"); err != nil {
		return err
	}
	return f.Machine.StreamSync(s)
}
