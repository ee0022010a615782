package kv

import (
	"runtime"
	"sync/atomic"
	"time"
)

// SideBySide calls f for 0 to n-1, on several cores where that pays, and returns
// when all are done. Each is about how long one call of f takes.
//
// A layer of a live run makes a call or two of some microseconds' work per core,
// one right after the other, and more when the GPU has computed the next layer.
// To wake a sleeping thread takes as long as such a call: tens of microseconds in
// a virtual machine. To keep one awake takes its core from the threads that save
// and from the driver. So as many helpers stay awake from layer to layer as its
// calls give enough to do, a quarter of the cores at least and all of them where
// each has worthStaying to do (on 16 cores of one host 4.7 to 5.0 ms for 1,024 groups x 64
// blocks x 16 requests, with three quarters at most 5.4 to 5.9 in the same minute); the others
// sleep, and are woken when one call gives each of them much to do, or many calls
// together. That quarter stays awake while requests decode, unless a layer takes longer than
// awakeLong: a layer that copies hundreds of blocks one by one, or computes a chunk of a
// prompt, takes milliseconds, and the GPU waits for the next one's lookup. One call at
// a time has the helpers; what else is called meanwhile does its work alone.
func SideBySide(n int, each time.Duration, f func(i int)) {
	work := time.Duration(n) * each
	if n < 2 || work < worthSharing || runtime.GOMAXPROCS(0) < 2 || !helpers.taken.CompareAndSwap(false, true) {
		for i := range n {
			f(i)
		}
		return
	}
	helpers.run(n, work, f)
}

// Times of a helper. Tests change none of them.
const (
	worthSharing = 5 * time.Microsecond   // work that an awake helper is worth being told of
	worthJoining = time.Microsecond       // work of its own for which an awake helper joins in
	worthStaying = 20 * time.Microsecond  // work of its own in a layer's largest call for which it stays awake till the next layer
	worthWaking  = 50 * time.Microsecond  // work of its own for which a helper is woken
	owedToWake   = 500 * time.Microsecond // work that sleeping helpers would have done, for which they are woken

	// Before a helper sleeps.
	awakeShort = 30 * time.Microsecond   // from one call of a layer to the next
	awakeStep  = 1300 * time.Microsecond // from one layer of decodes to the next, or from a step's last to the next step's first, but not over a chunk of a prompt, whose saves want cores
	awakeLong  = 20 * time.Millisecond   // from one layer to the next, whatever either does
)

var helpers crew

var reserved atomic.Int32

// Reserve says that another thread keeps one more core busy, or -1 that one no longer
// does: helpers leave as many alone.
func Reserve(cores int) { reserved.Add(int32(cores)) }

// crew are goroutines that wait for work to share. The first of them are those
// that stay awake.
type crew struct {
	taken  atomic.Bool
	all    []*helper
	owed   time.Duration
	always atomic.Int32 // helpers that stay awake from step to step
	f      func(i int)
	parts  []part // who calls has the first, helpers those of their rank + 1

	// What helpers poll or count on lies in cache lines of its own.
	_      [64]byte
	posted atomic.Uint64 // a notice
	_      [56]byte
	inside atomic.Int64 // helpers that may be in f
	_      [56]byte
}

// part are the calls of f that are one thread's to begin with. The same thread has
// them from call to call as long as equal calls have as many helpers, and what f
// reads and writes stays in its core's cache.
type part struct {
	next atomic.Int64 // index of f
	end  int64
	_    [48]byte
}

// notice is what helpers are told of a call: its number, how many of them may
// join in and how many shall stay awake, and whether it still runs.
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

// run makes a call. Who calls has taken the crew.
func (c *crew) run(n int, work time.Duration, f func(i int)) {
	procs := max(1, runtime.GOMAXPROCS(0)-int(reserved.Load()))
	join := min(n-1, procs-1, 0x7fff, int(work/worthJoining))
	always := max(0, procs/4-1)
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
				runtime.Gosched() // to a helper that has no core
			}
		}
		c.f = nil
		c.taken.Store(false)
	}()
	c.share(0)
}

// divide gives each of some threads its part of the n calls.
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

// awake are how many of the first helpers do not sleep, those included that have
// just been woken.
func (c *crew) awake(most int) (n int) {
	for _, h := range c.all[:min(most, len(c.all))] {
		if h.asleep.Load() {
			break
		}
		n++
	}
	return n
}

// summon has the first helpers awake, and those after them up to stay when they
// have been missed for long enough.
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

// share does a thread's part of the call, and then what is left of others'.
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

// help shares in every call that wants it.
func (h *helper) help(c *crew) {
	until := time.Now().Add(awakeShort)
	var last notice
	for {
		if last = h.wait(c, last, until); last.open() && h.rank < last.join() {
			// The call ends when nobody is inside: who comes too late leaves again.
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
