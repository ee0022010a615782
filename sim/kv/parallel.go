package kv

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// SideBySide calls f for 0 to n-1, on several cores where that pays, and returns
// when all are done. Each is about how long one call of f takes.
//
// A layer of a live run makes a few calls of some microseconds' work per core,
// one right after the other, and another few when the GPU has computed the next
// layer. To wake a sleeping thread takes as long as such a call: tens of
// microseconds in a virtual machine. To keep one awake takes its core from the
// threads that save and from the driver. So a quarter of the cores stays awake
// from layer to layer and helps with every call; the others sleep between calls
// and are woken for those that give each of them enough to do. One call at a
// time has the helpers; what else is called meanwhile does its work alone.
func SideBySide(n int, each time.Duration, f func(i int)) {
	work := time.Duration(n) * each
	if n < 2 || work < worthSharing || runtime.GOMAXPROCS(0) < 2 || !helpers.taken.CompareAndSwap(false, true) {
		for i := range n {
			f(i)
		}
		return
	}
	defer helpers.taken.Store(false)
	helpers.call(n, work, f)
}

// Times of a helper. Tests change none of them.
const (
	worthSharing = 5 * time.Microsecond   // work that an awake helper is worth being told of
	worthWaking  = 50 * time.Microsecond  // work of its own for which a helper is woken
	awakeShort   = 30 * time.Microsecond  // before it sleeps: from one call of a layer to the next
	awakeLong    = 500 * time.Microsecond // the same of those that stay awake from layer to layer
)

// keen is how many helpers stay awake from layer to layer.
func keen() int { return runtime.GOMAXPROCS(0)/4 - 1 }

var helpers = newCrew()

// crew are goroutines that wait for work to share.
type crew struct {
	taken   atomic.Bool
	job     atomic.Pointer[job] // the last call's
	started int                 // helpers; the first of them are the keen ones
	mu      sync.Mutex
	keen    room
	others  room
}

// room is where helpers sleep.
type room struct {
	posted sync.Cond
	asleep int // guarded by the crew's mu
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
	c.keen.posted.L, c.others.posted.L = &c.mu, &c.mu
	return c
}

func (c *crew) call(n int, work time.Duration, f func(i int)) {
	j := &job{f: f, n: int64(n)}
	c.job.Store(j)
	keen := keen()
	want := min(n-1, runtime.GOMAXPROCS(0)-1, max(keen, int(work/worthWaking)))
	for ; c.started < want; c.started++ {
		if c.started < keen {
			go c.help(&c.keen, awakeLong)
		} else {
			go c.help(&c.others, awakeShort)
		}
	}
	c.mu.Lock()
	c.keen.wake(want)
	c.others.wake(want - (c.started - c.others.asleep))
	c.mu.Unlock()
	j.work()
	for spins := 1; j.done.Load() < j.n; spins++ {
		if spins%256 == 0 {
			runtime.Gosched() // to a helper that has no core
		}
	}
}

func (r *room) wake(n int) {
	for range min(r.asleep, n) {
		r.posted.Signal()
	}
}

func (j *job) work() {
	for i := j.next.Add(1) - 1; i < j.n; i = j.next.Add(1) - 1 {
		j.f(int(i))
		j.done.Add(1)
	}
}

// help shares in every call that it sees.
func (c *crew) help(r *room, awake time.Duration) {
	var last *job
	for {
		last = c.wait(last, r, awake)
		last.work()
	}
}

// wait returns the first job after the last one seen.
func (c *crew) wait(last *job, r *room, awake time.Duration) *job {
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
	r.asleep++
	for c.job.Load() == last {
		r.posted.Wait()
	}
	r.asleep--
	return c.job.Load()
}
