// Package queue makes the driver's calls on its own thread, so that a launch overlaps with the
// server's bookkeeping of the layer.
//
// queue.go has the machine that enqueues, workers.go the threads.
package queue

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sparseserve/sparseserve/cuda"
)

// Queue is a machine whose thread launches work for streams in order. Calls that wait for a stream,
// or free memory, first wait until all earlier work is on its stream. Calls without a stream are
// direct. All calls except the thread's come from one other thread.
//
// The first failure is kept with its step and layer, and returned by every later call and by Err.
// No later work is launched: a caller may launch without checks and call Err at the end.
type Queue struct {
	cuda.Machine         // by both threads
	own          counted // of the thread
	step         int64   // of the work that is enqueued now
	layer        int     // likewise; below 0: none
	closed       bool
	work         chan entry
	failure      atomic.Pointer[Failure]
}

// length is the launches of several steps of one decode, or of half a step that loads in many
// rounds.
const length = 1024

// counted counts the driver's calls that enqueue work.
type counted struct {
	cuda.Machine
	calls *int64
}

func (c counted) Launch(op cuda.Operation, s cuda.Stream) error {
	*c.calls++
	if b, ok := op.(*cuda.MemcpyBlocksArgs); ok { // one call a block
		*c.calls += b.Count - 1
	}
	return c.Machine.Launch(op, s)
}

// entry is one call.
type entry struct {
	run     func(cuda.Machine) error
	abandon func(error) // nil: nothing waits for the call
	drained chan<- struct{}
	step    int64
	layer   int
}

// Failure is an error with its step and layer.
type Failure struct {
	Step  int64
	Layer int // below 0: none
	Err   error
}

func (f *Failure) Error() string {
	if f.Layer < 0 {
		return fmt.Sprintf("live: step %d: %v", f.Step, f.Err)
	}
	return fmt.Sprintf("live: step %d, layer %d: %v", f.Step, f.Layer, f.Err)
}

// Unwrap returns the error itself.
func (f *Failure) Unwrap() error { return f.Err }

// New starts a queue in front of a machine. Its thread counts the driver's calls in calls, to be
// read after Drain.
func New(m cuda.Machine, calls *int64) (*Queue, error) {
	q := &Queue{Machine: m, own: counted{m, calls}, layer: -1, work: make(chan entry, length)}
	started := make(chan error)
	workers.start(func() { q.run(started) })
	return q, <-started
}

// run is the thread's loop.
func (q *Queue) run(started chan<- error) {
	err := q.Init(0)
	if started <- err; err != nil {
		return
	}
	for e := range q.work {
		switch err := q.Err(); {
		case e.drained != nil:
			e.drained <- struct{}{}
		case err == nil:
			if err := e.run(q.own); err != nil {
				q.failure.CompareAndSwap(nil, &Failure{e.step, e.layer, err})
			}
		case e.abandon != nil:
			e.abandon(err)
		}
	}
}

// Do enqueues work with more than one call. If earlier work has failed, abandon, unless it is nil,
// is called instead of run.
func (q *Queue) Do(run func(cuda.Machine) error, abandon func(error)) error {
	q.work <- entry{run: run, abandon: abandon, step: q.step, layer: q.layer}
	return q.Err()
}

// Err returns the first failure, or nil.
func (q *Queue) Err() error {
	if f := q.failure.Load(); f != nil {
		return f
	}
	return nil
}

// Fail sets the failure to err, at the present step and layer, unless there is one or err is nil.
func (q *Queue) Fail(err error) {
	if f := (*Failure)(nil); err != nil && !errors.As(err, &f) {
		q.failure.CompareAndSwap(nil, &Failure{q.step, q.layer, err})
	}
}

// At sets the step and the layer (below 0: none) of later calls.
func (q *Queue) At(step int64, layer int) { q.step, q.layer = step, layer }

// Launch enqueues an operation. The operation belongs to the queue from here on: the thread reads
// it later, so it must not change.
func (q *Queue) Launch(op cuda.Operation, s cuda.Stream) error {
	return q.Do(func(m cuda.Machine) error { return m.Launch(op, s) }, nil)
}

// EventRecord enqueues the recording.
func (q *Queue) EventRecord(e cuda.Event, s cuda.Stream) error {
	return q.Do(func(m cuda.Machine) error { return m.EventRecord(e, s) }, nil)
}

// StreamWait enqueues the wait.
func (q *Queue) StreamWait(s cuda.Stream, e cuda.Event) error {
	return q.Do(func(m cuda.Machine) error { return m.StreamWait(s, e) }, nil)
}

// Drain waits until all enqueued work is on its stream.
func (q *Queue) Drain() error {
	if !q.closed {
		drained := make(chan struct{})
		q.work <- entry{drained: drained}
		<-drained
	}
	return q.Err()
}

// Close ends the thread's work for this queue. Later calls do not wait.
func (q *Queue) Close() {
	if q.closed {
		return
	}
	_ = q.Drain() // its failure has been reported
	q.closed = true
	close(q.work)
}

// StreamSync waits for the queue, then for the stream.
func (q *Queue) StreamSync(s cuda.Stream) error {
	if err := q.Drain(); err != nil {
		return err
	}
	return q.Machine.StreamSync(s)
}

// EventSync waits for the queue, then for the event.
func (q *Queue) EventSync(e cuda.Event) error {
	if err := q.Drain(); err != nil {
		return err
	}
	return q.Machine.EventSync(e)
}

// EventMilliseconds returns the time between two events that have passed.
func (q *Queue) EventMilliseconds(from, to cuda.Event) (float64, error) {
	if err := q.Drain(); err != nil {
		return 0, err
	}
	return q.Machine.EventMilliseconds(from, to)
}

// Calls that free resources also run after a failure.

// DeviceFree frees device memory, after the queued work.
func (q *Queue) DeviceFree(p cuda.Ptr) error {
	_ = q.Drain()
	return q.Machine.DeviceFree(p)
}

// HostFree frees pinned memory, after the queued work.
func (q *Queue) HostFree(m cuda.HostMemory) error {
	_ = q.Drain()
	return q.Machine.HostFree(m)
}

// StreamDestroy ends a stream after its work.
func (q *Queue) StreamDestroy(s cuda.Stream) error {
	_ = q.Drain()
	return q.Machine.StreamDestroy(s)
}
