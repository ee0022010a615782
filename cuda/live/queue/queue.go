// Package queue makes the driver's calls on its own thread. A launch costs the driver some
// microseconds, as long as the server's bookkeeping of a layer. Sequentially on one thread, the two
// may take longer than the layer on the GPU.
//
// queue.go has the machine that enqueues, gate.go the waiting between its two threads, workers.go
// the threads themselves.
package queue

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/parallel"
)

// Queue is a machine whose thread launches work for streams in order. Calls that wait for a stream,
// or free memory, first wait until all earlier work is on its stream. Calls without a stream are
// direct. All calls except the thread's come from one other thread.
//
// The first failure is kept with its step and layer, and returned by every later call and by Err.
// No later work is launched: a caller may launch without checks and call Err at the end.
type Queue struct {
	cuda.Machine        // by both threads
	calls        *int64 // driver calls that enqueue work
	step         int64  // of what is enqueued now
	layer        int    // likewise; below 0: none
	spin         time.Duration
	closed       bool

	ring [length]entry
	_    [64]byte
	put  atomic.Int64 // entries ever enqueued; written by the caller's thread
	_    [56]byte
	done atomic.Int64 // entries ever carried out; written by the queue's thread
	_    [56]byte
	free gate // of the caller, which waits for done
	work gate // of the queue's thread, which waits for put

	failure atomic.Pointer[Failure]
}

// length is the launches of several steps of one decode, or of half a step that loads in many
// rounds.
const length = 1024

// Task is work for the queue's thread with more than one operation. Run receives the queue's
// machine. Abandon is called instead if earlier work has failed.
type Task interface {
	Run(cuda.Machine) error
	Abandon(error)
}

// entry holds one of: an operation for the stream, an event to record on it or to wait for, a task.
type entry struct {
	op           cuda.Operation
	stream       cuda.Stream
	record, wait cuda.Event
	task         Task
	end          bool // of the thread's work
	step         int64
	layer        int
}

func (e *entry) run(m cuda.Machine) error {
	switch {
	case e.op != nil:
		return m.Launch(e.op, e.stream)
	case e.record != 0:
		return m.EventRecord(e.record, e.stream)
	case e.wait != 0:
		return m.StreamWait(e.stream, e.wait)
	case e.task != nil:
		return e.task.Run(m)
	}
	return nil
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

// New starts a queue in front of a machine. It counts the driver's calls in calls. A waiting thread
// spins for the given time before it sleeps (Spin).
func New(m cuda.Machine, calls *int64, spin time.Duration) (*Queue, error) {
	q := &Queue{Machine: m, calls: calls, layer: -1, spin: spin}
	q.free.init(spin)
	q.work.init(spin)
	started := make(chan error)
	workers.start(func() { q.run(started) })
	err := <-started
	if err == nil && spin > shortSpin {
		parallel.Reserve(1)
	}
	return q, err
}

// run is the thread's loop.
func (q *Queue) run(started chan<- error) {
	err := q.Init(0)
	started <- err
	if err != nil {
		return
	}
	for n := int64(0); ; n++ {
		q.work.await(func() bool { return q.put.Load() > n })
		e := &q.ring[n%length]
		if err := q.Err(); err == nil {
			if err := e.run(q.Machine); err != nil {
				q.failure.CompareAndSwap(nil, &Failure{e.step, e.layer, err})
			}
		} else if e.task != nil {
			e.task.Abandon(err)
		}
		end := e.end
		e.op, e.task = nil, nil
		q.done.Store(n + 1)
		q.free.open()
		if end {
			return
		}
	}
}

// enqueue hands an entry to the thread, after waiting for a free one.
func (q *Queue) enqueue(e entry) error {
	n := q.put.Load()
	q.free.await(func() bool { return n-q.done.Load() < length })
	e.step, e.layer = q.step, q.layer
	q.ring[n%length] = e
	q.put.Add(1)
	q.work.open()
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
	*q.calls++
	if b, ok := op.(*cuda.MemcpyBlocksArgs); ok { // one call a block
		*q.calls += b.Count - 1
	}
	return q.enqueue(entry{op: op, stream: s})
}

// Do enqueues a task.
func (q *Queue) Do(t Task) error { return q.enqueue(entry{task: t}) }

// EventRecord enqueues the recording.
func (q *Queue) EventRecord(e cuda.Event, s cuda.Stream) error {
	return q.enqueue(entry{record: e, stream: s})
}

// StreamWait enqueues the wait.
func (q *Queue) StreamWait(s cuda.Stream, e cuda.Event) error {
	return q.enqueue(entry{wait: e, stream: s})
}

// Drain waits until all enqueued work is on its stream.
func (q *Queue) Drain() error {
	n := q.put.Load()
	q.free.await(func() bool { return q.done.Load() == n })
	return q.Err()
}

// Put returns the number of calls enqueued so far.
func (q *Queue) Put() int64 { return q.put.Load() }

// EventSyncAfter waits until the first n calls are made, including the recording of the event, and
// then for the event. Later calls need not have been launched.
func (q *Queue) EventSyncAfter(n int64, e cuda.Event) error {
	q.free.await(func() bool { return q.done.Load() >= n })
	if err := q.Err(); err != nil {
		return err
	}
	return q.Machine.EventSync(e)
}

// Wake wakes the thread before the first call of a step.
func (q *Queue) Wake() { q.work.open() }

// Close ends the thread's work for this queue. Later calls do not wait.
func (q *Queue) Close() {
	if q.closed {
		return
	}
	q.closed = true
	_ = q.enqueue(entry{end: true}) // its failure has been reported
	_ = q.Drain()
	if q.spin > shortSpin {
		parallel.Reserve(-1)
	}
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

// EventDestroy ends an event after its work.
func (q *Queue) EventDestroy(e cuda.Event) error {
	_ = q.Drain()
	return q.Machine.EventDestroy(e)
}
