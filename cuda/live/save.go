package live

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/cuda/live/queue"
)

// saver saves full blocks to DRAM during the computation. The compute stream copies them into a
// ring of device memory, which frees their slots; a second thread moves them from there with the
// system's engine. The ring has offload.save_buffer_mib. When it is full, the computation waits.
type saver struct {
	m          cuda.Machine // of the second thread
	q          *queue.Queue // of the thread that computes
	engine     string       // memcpy | gpu | flash
	blockBytes int64
	ring       cuda.Ptr
	blocks     int64           // of the ring
	dst        cuda.HostMemory // address of each block of the ring
	addresses  []int64
	flash      cuda.Saver

	held sync.Mutex // while memory grows

	mu        sync.Mutex
	moved     *sync.Cond
	head      int64 // blocks ever reserved, padding at the ring's end included
	tail      int64 // blocks ever freed, likewise
	submitted int64 // jobs
	done      int64
	doneAt    time.Time // of the newest job done
	open      []job     // not done yet
	err       error
	jobs      chan job
	ended     chan struct{}
	events    []cuda.Event // spare
}

// job is one contiguous part of the ring.
type job struct {
	number, step int64
	layer        int
	at, count    int64 // in blocks of the ring
	release      int64 // tail once done
	ready        cuda.Event
}

const (
	saveThreads = 6 // more gain little, and other threads need cores too
	saveChunk   = 8 << 20
	saveStages  = 8

	savePart = 256 // blocks copied one by one between two looks at hold
)

// newSaver starts the second thread.
func newSaver(q *queue.Queue, engine string, bufferBytes, blockBytes int64, threads int) (*saver,
	error) {
	m := q.Machine
	s := &saver{m: m, q: q, engine: engine, blockBytes: blockBytes, jobs: make(chan job, 1024),
		ended: make(chan struct{})}
	s.moved = sync.NewCond(&s.mu)
	s.blocks = ringBlocks(bufferBytes, blockBytes)
	var err error
	if s.ring, err = m.DeviceAlloc(s.blocks * blockBytes); err != nil {
		return nil, fmt.Errorf("save buffer of %s: %w", mem.GiB(s.blocks*blockBytes), err)
	}
	// second half: source addresses
	if s.dst, err = m.HostAlloc(2*8*s.blocks, cuda.DriverPages); err != nil {
		return nil, err
	}
	s.addresses = cuda.Slice[int64](s.dst)
	if engine == "flash" {
		if threads == 0 {
			threads = saveThreads
		}
		if s.flash, err = m.SaverCreate(threads, max(saveChunk, blockBytes),
			saveStages); err != nil {
			return nil, err
		}
	}
	for i := range s.blocks {
		s.addresses[s.blocks+i] = int64(s.ring) + i*blockBytes
	}
	started := make(chan error)
	go s.run(started)
	return s, <-started
}

// run is the second thread's loop.
func (s *saver) run(started chan<- error) {
	runtime.LockOSThread()
	defer close(s.ended)
	if err := s.m.Init(0); err != nil {
		started <- err
		return
	}
	stream, err := s.m.StreamCreate(false)
	if started <- err; err != nil {
		return
	}
	for j := range s.jobs {
		err := s.carryOut(&j, stream)
		s.mu.Lock()
		if err != nil && s.err == nil {
			s.err = fmt.Errorf("saving %d blocks of step %d, layer %d: %w", j.count, j.step,
				j.layer, err)
		}
		s.done, s.tail, s.doneAt = j.number, j.release, time.Now()
		s.open = s.open[:copy(s.open, s.open[1:])]
		s.events = append(s.events, j.ready)
		s.moved.Broadcast()
		s.mu.Unlock()
	}
}

// carryOut moves one part of the ring to its blocks in DRAM and returns when it is done.
func (s *saver) carryOut(j *job, stream cuda.Stream) error {
	dst, src := s.dst.Ptr()+cuda.Ptr(8*j.at), s.dst.Ptr()+cuda.Ptr(8*(s.blocks+j.at))
	blocks := func(from, n int64) cuda.BlocksArgs {
		at := cuda.Ptr(8 * from)
		return cuda.BlocksArgs{Src: src + at, Dst: dst + at, Count: n, BlockBytes: s.blockBytes}
	}
	if s.engine == "flash" {
		// Its threads would spin until then.
		if err := s.m.EventSync(j.ready); err != nil {
			return err
		}
		s.pass()
		return s.m.Launch(&cuda.SaveArgs{
			Saver: s.flash, Src: s.ring + cuda.Ptr(j.at*s.blockBytes), Dst: dst, Count: j.count,
			BlockBytes: s.blockBytes,
		}, 0)
	}
	if err := s.m.StreamWait(stream, j.ready); err != nil {
		return err
	}
	if s.engine == "gpu" {
		s.pass()
		all := cuda.GPUScatterArgs(blocks(0, j.count))
		if err := s.m.Launch(&all, stream); err != nil {
			return err
		}
		return s.m.StreamSync(stream)
	}
	// A stream accepts about a thousand copies before a call waits for one of them.
	for from := int64(0); from < j.count; from += savePart {
		s.pass()
		part := cuda.MemcpyBlocksArgs(blocks(from, min(savePart, j.count-from)))
		if err := s.m.Launch(&part, stream); err != nil {
			return err
		}
	}
	return s.m.StreamSync(stream)
}

// record returns an event after the copies enqueued on a stream so far.
func (s *saver) record(stream cuda.Stream) (ready cuda.Event, err error) {
	s.mu.Lock()
	if k := len(s.events); k > 0 {
		ready, s.events = s.events[k-1], s.events[:k-1]
	}
	s.mu.Unlock()
	if ready == 0 {
		if ready, err = s.m.EventCreate(false); err != nil {
			return 0, err
		}
	}
	return ready, s.q.EventRecord(ready, stream)
}

// submit hands over a reserved part, in the order of reservations; ready is after the copies into
// it.
func (s *saver) submit(step int64, layer int, at, n, end int64, ready cuda.Event) (number int64,
	err error) {
	s.mu.Lock()
	s.submitted++
	j := job{number: s.submitted, step: step, layer: layer, at: at, count: n, release: end,
		ready: ready}
	s.open = append(s.open, j)
	s.mu.Unlock()
	return j.number, s.q.Do(func(cuda.Machine) error { // after the work that it waits for was launched
		s.jobs <- j
		return nil
	}, s.fail)
}

// fail ends the wait for jobs that will never arrive.
func (s *saver) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.moved.Broadcast()
}

// wait blocks until a job and all earlier jobs are done.
func (s *saver) wait(number int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.done < number && s.err == nil {
		s.moved.Wait()
	}
	return s.err
}

// finished returns the number of the newest finished job.
func (s *saver) finished() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// saved returns how many of the first given steps have all their saves in DRAM, and the end of the
// newest save.
func (s *saver) saved(steps int64) (n int64, at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = steps; len(s.open) > 0 {
		n = s.open[0].step
	}
	return n, s.doneAt, s.err
}

// drain waits for all jobs and returns the end of the last one.
func (s *saver) drain() (time.Time, error) {
	if err := s.wait(s.submitted); err != nil {
		return time.Time{}, err
	}
	return s.doneAt, nil
}

// close ends the second thread.
func (s *saver) close() {
	close(s.jobs)
	<-s.ended
}
