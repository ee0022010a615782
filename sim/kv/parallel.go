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
// A step of a live run makes some hundred calls of a few microseconds' work per
// core each, so the helpers of one call stay awake for the next. One call at a
// time has them; what else is called meanwhile does its work alone.
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
// than a layer of a decode step.
const awake = 500 * time.Microsecond

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
	if c.asleep > 0 {
		c.posted.Broadcast()
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
