package parallel

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Do calls f for 0 to n-1, on several cores if that is faster, and returns when all calls are done.
// each is the approximate time of one call of f. Only one Do at a time uses the helpers; a
// concurrent one runs on its own thread.
func Do(n int, each des.Time, f func(i int)) {
	work := time.Duration(n) * time.Duration(each)
	if n < 2 || work < worthSharing || runtime.GOMAXPROCS(0) < 2 ||
		!helpers.taken.CompareAndSwap(false, true) {
		for i := range n {
			f(i)
		}
		return
	}
	helpers.run(n, work, f)
}

// Thresholds of a helper.
const (
	worthSharing = 5 * time.Microsecond   // work of a call that awake helpers share
	worthJoining = time.Microsecond       // work per helper for which an awake one joins
	worthStaying = 20 * time.Microsecond  // work per helper for which it spins until the next layer
	worthWaking  = 50 * time.Microsecond  // work per helper for which a sleeping one is woken
	owedToWake   = 500 * time.Microsecond // missed work for which sleeping helpers are woken

	// Spinning before a helper sleeps.
	awakeShort = 30 * time.Microsecond   // between the calls of a layer
	awakeStep  = 1300 * time.Microsecond // between layers that only decode, or between steps
	awakeLong  = 20 * time.Millisecond   // between any two layers
)

var helpers crew

var reserved atomic.Int32

// Reserved returns the number of reserved cores.
func Reserved() int { return int(reserved.Load()) }

// Reserve reserves cores for threads that spin elsewhere; negative numbers release them.
func Reserve(cores int) { reserved.Add(int32(cores)) }

// crew is the goroutines that share work. Helpers of low rank stay awake.
type crew struct {
	taken  atomic.Bool
	all    []*helper
	owed   time.Duration
	always atomic.Int32 // helpers that stay awake from step to step
	f      func(i int)
	parts  []part // the caller's, then the helpers' by rank

	// Polled by helpers: in cache lines of their own.
	_      [64]byte
	posted atomic.Uint64 // a notice
	_      [56]byte
	inside atomic.Int64 // helpers that may be in f
	_      [56]byte
}

// part is the indices that one thread starts with. Equal calls with the same number of helpers give
// a thread the same part, whose data is then in its core's cache.
type part struct {
	next atomic.Int64 // index of f
	end  int64
	_    [48]byte
}

// notice packs a call's number, how many helpers may join, how many stay awake, and
// whether it still runs.
type notice uint64

func newNotice(number uint64, join, stay int) notice {
	return notice(number<<32 | uint64(join)<<17 | uint64(stay)<<2 | 1)
}

func (n notice) number() uint64 { return uint64(n) >> 32 }
func (n notice) join() int      { return int(n >> 17 & 0x7fff) }
func (n notice) stay() int      { return int(n >> 2 & 0x7fff) }
func (n notice) open() bool     { return n&1 != 0 }
func (n notice) closed() notice { return n &^ 1 }

// helper is one goroutine of the crew.
type helper struct {
	rank   int
	asleep atomic.Bool
	wake   chan struct{}
	_      [40]byte
}

// alwaysAwake is how many helpers stay awake from step to step: with the caller, half of the cores.
func alwaysAwake(procs int) int { return max(0, (procs-1)/2) }

// run runs a call on the crew, which it has taken.
func (c *crew) run(n int, work time.Duration, f func(i int)) {
	procs := max(1, runtime.GOMAXPROCS(0)-int(reserved.Load()))
	join := min(n-1, procs-1, 0x7fff, int(work/worthJoining))
	always := alwaysAwake(procs)
	c.always.Store(int32(always))
	stay := min(max(always, int(work/worthStaying)), procs-1)
	call := newNotice(notice(c.posted.Load()).number()+1, join, max(0, stay))
	c.summon(min(join, max(always, int(work/worthWaking))), min(join, stay))
	c.f = f
	c.divide(n, 1+c.awake(join))
	c.posted.Store(uint64(call))
	defer func() {
		c.posted.Store(uint64(call.closed()))
		for spins := 1; c.inside.Load() > 0; spins++ {
			if Pause(); spins%256 == 0 {
				runtime.Gosched() // a helper may have no core
			}
		}
		c.f = nil
		c.taken.Store(false)
	}()
	c.share(0)
}

// divide splits the n calls into one part per thread.
func (c *crew) divide(n, threads int) {
	for len(c.parts) < threads {
		c.parts = append(c.parts, part{})
	}
	c.parts = c.parts[:threads]
	for i := range c.parts {
		c.parts[i].next.Store(int64(i * n / threads))
		c.parts[i].end = int64((i + 1) * n / threads)
	}
}

// awake counts the first helpers that do not sleep, including those just woken.
func (c *crew) awake(most int) (n int) {
	for _, h := range c.all[:min(most, len(c.all))] {
		if h.asleep.Load() {
			break
		}
		n++
	}
	return n
}

// summon wakes the first now helpers. It wakes helpers up to stay after enough work has run without
// them.
func (c *crew) summon(now, stay int) {
	for rank := now; rank < stay; rank++ {
		if rank >= len(c.all) || c.all[rank].asleep.Load() {
			c.owed += worthStaying
		}
	}
	if c.owed > owedToWake {
		c.owed, now = 0, max(now, stay)
	}
	for rank := range now {
		if rank == len(c.all) {
			h := &helper{rank: rank, wake: make(chan struct{}, 1)}
			c.all = append(c.all, h)
			go h.help(c)
		} else if h := c.all[rank]; h.asleep.Load() {
			h.asleep.Store(false)
			h.wake <- struct{}{}
		}
	}
}

// share runs a thread's part of the call, then steals from other parts.
func (c *crew) share(own int) {
	for k := range c.parts {
		p := &c.parts[(own+k)%len(c.parts)]
		for p.next.Load() < p.end {
			i := p.next.Add(1) - 1
			if i >= p.end {
				break
			}
			c.f(int(i))
		}
	}
}

// help joins every call that needs helpers.
func (h *helper) help(c *crew) {
	until := time.Now().Add(awakeShort)
	var last notice
	for {
		if last = h.wait(c, last, until); last.open() && h.rank < last.join() {
			// The call ends when no helper is inside; a late helper backs out.
			c.inside.Add(1)
			if notice(c.posted.Load()) == last {
				c.share(h.rank + 1)
			}
			c.inside.Add(-1)
		}
		if t := time.Now().Add(h.staysFor(c, last)); t.After(until) {
			until = t
		}
	}
}

// staysFor is how long the helper stays awake after a call.
func (h *helper) staysFor(c *crew, last notice) time.Duration {
	switch {
	case h.rank < int(c.always.Load()):
		return awakeLong
	case h.rank < last.stay():
		return awakeStep
	}
	return awakeShort
}

// wait returns the notice of the first call after the last one seen.
func (h *helper) wait(c *crew, last notice, until time.Time) notice {
	for {
		for spins := 1; ; spins++ {
			if now := notice(c.posted.Load()); now.number() != last.number() {
				return now
			}
			if Pause(); spins%32 == 0 && time.Now().After(until) {
				break
			}
		}
		h.asleep.Store(true)
		<-h.wake
		until = time.Now().Add(awakeShort)
	}
}
