package live

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"sparseserve/cuda"
	"sparseserve/sim/kv"
)

// queue is a machine whose work for streams is put there by a thread of its own, in order: a launch costs the driver some microseconds, as long as the
// server's books of a layer take, and by turns on one thread the two may outlast the layer on the GPU. What waits for a stream, or gives memory back,
// waits first until all that was asked before is on its stream. What needs no stream is not queued.
//
// Arguments are copied. A call that fails is told of by a later one, as a GPU's own faults are, with its step and layer; nothing after it is done.
type queue struct {
	Machine  // by both threads
	counters *Counters
	step     int64         // of what is asked now
	layer    int           // likewise; below 0: none
	look     time.Duration // before a thread sleeps
	closed   bool

	calls [queueLength]call
	_     [64]byte
	put   atomic.Int64 // calls ever asked; the caller's thread adds
	_     [56]byte
	done  atomic.Int64 // calls ever carried out; the other adds
	_     [56]byte
	room  gate // of the caller, that waits for done
	work  gate // of the other, that waits for put

	failure atomic.Pointer[lateError]
	// Of calls that take several of the driver's, and as many as the GPU lets them: to be read once all is done.
	launched int64
	inRounds time.Duration
}

// queueLength is some steps of one decode, or half of a step that loads in many rounds.
const queueLength = 1024

// lateError is what was wrong with a call that has been asked some time ago.
type lateError struct {
	step  int64
	layer int
	err   error
}

func (e *lateError) Error() string {
	if e.layer < 0 {
		return fmt.Sprintf("step %d: %v", e.step, e.err)
	}
	return fmt.Sprintf("step %d, layer %d: %v", e.step, e.layer, e.err)
}

func (e *lateError) Unwrap() error { return e.err }

// told returns the error for what went wrong where; a late one knows better.
func told(err error, format string, where ...any) error {
	if late := (*lateError)(nil); errors.As(err, &late) {
		return fmt.Errorf("live: %w", late)
	}
	return fmt.Errorf("live: "+format+": %w", append(where, err)...)
}

// newQueue starts the thread. All calls but those of the thread come from one other thread. A thread that waits looks for so long before it sleeps.
func newQueue(m Machine, counters *Counters, look time.Duration) (*queue, error) {
	q := &queue{Machine: m, counters: counters, layer: -1, look: look}
	q.room.init(look)
	q.work.init(look)
	started := make(chan error)
	workers.start(func() { q.run(started) })
	err := <-started
	if err == nil && look > shortSpin {
		kv.Reserve(1)
	}
	return q, err
}

// workers are the threads of queues. One that has ended serves the next: the library keeps for every thread what it does not give back, a handle of cuBLAS
// with its workspace among it.
var workers threadPool

type threadPool struct {
	mu   sync.Mutex
	idle []chan func()
}

func (c *threadPool) start(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		c.idle[n-1] <- f
		c.idle = c.idle[:n-1]
		return
	}
	work := make(chan func(), 1)
	work <- f
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
			c.mu.Lock()
			c.idle = append(c.idle, work)
			c.mu.Unlock()
		}
	}()
}

// run is what the thread does.
func (q *queue) run(started chan<- error) {
	err := q.Init(0)
	started <- err
	if err != nil {
		return
	}
	for n := int64(0); ; n++ {
		q.work.await(func() bool { return q.put.Load() > n })
		c := &q.calls[n%queueLength]
		if q.failure.Load() == nil {
			if err := c.carryOut(q); err != nil {
				q.failure.Store(&lateError{c.step, c.layer, err})
			}
		} else if c.kind == callHand {
			c.saver.fail(q.failed()) // or who waits for the job waits for ever
		}
		ends := c.kind == callEnd
		q.done.Store(n + 1)
		q.room.open()
		if ends {
			return
		}
	}
}

// next returns the place of the next call once it is free; ask hands it over.
func (q *queue) next(kind callKind, stream cuda.Stream, calls int64) *call {
	n := q.put.Load()
	q.room.await(func() bool { return n-q.done.Load() < queueLength })
	q.counters.Calls += calls
	c := &q.calls[n%queueLength]
	c.kind, c.stream, c.step, c.layer = kind, stream, q.step, q.layer
	return c
}

func (q *queue) ask() error {
	q.put.Add(1)
	q.work.open()
	return q.failed()
}

func (q *queue) failed() error {
	if f := q.failure.Load(); f != nil {
		return f
	}
	return nil
}

// at says what the calls from now on belong to; layer is below 0 for none.
func (q *queue) at(step int64, layer int) { q.step, q.layer = step, layer }

// drain waits until all that was asked is on its stream.
func (q *queue) drain() error {
	n := q.put.Load()
	q.room.await(func() bool { return q.done.Load() == n })
	return q.failed()
}

// close ends the thread's work for this queue. What waits for it finds nothing to wait for then.
func (q *queue) close() {
	if q.closed {
		return
	}
	q.closed = true
	q.next(callEnd, 0, 0)
	_ = q.ask() // it has been told of
	_ = q.drain()
	if q.look > shortSpin {
		kv.Reserve(-1)
	}
}

// Times to look before sleeping. To be woken takes some tens of microseconds, which no step on a GPU can spare; where processors are few, others need
// them.
const (
	shortSpin = 20 * time.Microsecond
	longSpin  = 20 * time.Millisecond
)

func spinFor() time.Duration {
	if runtime.GOMAXPROCS(0) < 8 {
		return shortSpin
	}
	return longSpin
}

// gate is where one thread waits for another.
type gate struct {
	asleep atomic.Bool
	wake   chan struct{}
	look   time.Duration
	slept  int64 // times
	_      [32]byte
}

func (g *gate) init(look time.Duration) { g.wake, g.look = make(chan struct{}, 1), look }

// await returns once ready says so, which another thread makes it say before it calls open. Woken too early, it looks on for a while.
func (g *gate) await(ready func() bool) {
	for !ready() {
		for begun := time.Now(); time.Since(begun) < g.look; {
			for range 16 {
				if ready() {
					return
				}
				kv.Pause()
			}
		}
		g.asleep.Store(true)
		if ready() {
			if !g.asleep.CompareAndSwap(true, false) {
				<-g.wake // open is waking it
			}
			return
		}
		g.slept++
		<-g.wake
	}
}

// open wakes who sleeps.
func (g *gate) open() {
	if g.asleep.Load() && g.asleep.CompareAndSwap(true, false) {
		g.wake <- struct{}{}
	}
}

// rouse has the thread be awake when the first call of a step comes.
func (q *queue) rouse() { q.work.open() }

// What waits for the GPU, or for what it has done.

func (q *queue) StreamSync(s cuda.Stream) error {
	if err := q.drain(); err != nil {
		return err
	}
	return q.Machine.StreamSync(s)
}

func (q *queue) EventSync(e cuda.Event) error {
	if err := q.drain(); err != nil {
		return err
	}
	return q.Machine.EventSync(e)
}

// PSAPipeline waits itself; Rounds does not.
func (q *queue) PSAPipeline(a *cuda.PSAPipelineArgs, s cuda.Stream) error {
	if err := q.drain(); err != nil {
		return err
	}
	return q.Machine.PSAPipeline(a, s)
}

func (q *queue) EventMilliseconds(from, to cuda.Event) (float64, error) {
	if err := q.drain(); err != nil {
		return 0, err
	}
	return q.Machine.EventMilliseconds(from, to)
}

// What gives back is done after a failure too.

func (q *queue) DeviceSync() error {
	_ = q.drain()
	return q.Machine.DeviceSync()
}

func (q *queue) DeviceFree(p cuda.Ptr) error {
	_ = q.drain()
	return q.Machine.DeviceFree(p)
}

func (q *queue) HostFree(m cuda.HostMemory) error {
	_ = q.drain()
	return q.Machine.HostFree(m)
}

func (q *queue) StreamDestroy(s cuda.Stream) error {
	_ = q.drain()
	return q.Machine.StreamDestroy(s)
}

func (q *queue) EventDestroy(e cuda.Event) error {
	_ = q.drain()
	return q.Machine.EventDestroy(e)
}
