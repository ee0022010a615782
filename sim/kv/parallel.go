package kv

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// SideBySide calls f for 0 to n-1, on as many cores as there are, and returns
// when all are done.
//
// A layer of a live run makes a few calls of some microseconds' work per core,
// one right after the other, so the helpers of one call stay awake for the next.
// They sleep while the GPU computes: helpers that spin through a layer take the
// cores from the threads that save, and the driver. One call at a time has them;
// what else is called meanwhile does its work alone.
func SideBySide(n int, f func(i int)) {
	if min(n, runtime.GOMAXPROCS(0)) < 2 || !helpers.taken.CompareAndSwap(false, true) {
		for i := range n {
			f(i)
		}
		return
	}
	defer helpers.taken.Store(false)
	helpers.call(n, f)
}

// awake is how long a helper looks for the next call before it sleeps: longer
// than from one call of a layer to the next, shorter than a layer takes. With
// 500 us, SparseServe's decode steps on an H200 took up to twice as long as with
// goroutines begun for each call, several processes with 16 cores each.
const awake = 30 * time.Microsecond

var helpers = newCrew()

// crew are goroutines that wait for work to share.
type crew struct {
	taken   atomic.Bool
	job     atomic.Pointer[job] // the last call's
	started int                 // helpers
	asleep  int                 // of them, guarded by mu
	mu      sync.Mutex
	posted  sync.Cond
}

// job is one call: indices are taken from next until there are no more.
type job struct {
	f    func(i int)
	n    int64
	next atomic.Int64
	done atomic.Int64
}

func newCrew() *crew {
	c := new(crew)
	c.posted.L = &c.mu
	return c
}

func (c *crew) call(n int, f func(i int)) {
	j := &job{f: f, n: int64(n)}
	c.job.Store(j)
	for ; c.started < min(n, runtime.GOMAXPROCS(0))-1; c.started++ {
		go c.help()
	}
	c.mu.Lock()
	for range min(c.asleep, n-1) {
		c.posted.Signal()
	}
	c.mu.Unlock()
	j.work()
	for spins := 1; j.done.Load() < j.n; spins++ {
		if spins%256 == 0 {
			runtime.Gosched() // to a helper that has no core
		}
	}
}

func (j *job) work() {
	for i := j.next.Add(1) - 1; i < j.n; i = j.next.Add(1) - 1 {
		j.f(int(i))
		j.done.Add(1)
	}
}

// help shares in every call that it sees.
func (c *crew) help() {
	var last *job
	for {
		last = c.wait(last)
		last.work()
	}
}

// wait returns the first job after the last one seen.
func (c *crew) wait(last *job) *job {
	until := time.Now().Add(awake)
	for spins := 1; ; spins++ {
		if j := c.job.Load(); j != last {
			return j
		}
		if spins%64 == 0 && time.Now().After(until) {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asleep++
	for c.job.Load() == last {
		c.posted.Wait()
	}
	c.asleep--
	return c.job.Load()
}
