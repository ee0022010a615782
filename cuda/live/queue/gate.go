package queue

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/sparseserve/sparseserve/cuda/live/parallel"
)

// Times to spin before sleeping. Waking a thread costs tens of microseconds of a
// step; on a small machine other threads need the processor.
const (
	shortSpin = 20 * time.Microsecond
	longSpin  = 20 * time.Millisecond
)

// Spin returns how long a waiting thread spins on this machine before it sleeps.
func Spin() time.Duration {
	if runtime.GOMAXPROCS(0) < 8 {
		return shortSpin
	}
	return longSpin
}

// gate is a place where one thread waits for another.
type gate struct {
	asleep atomic.Bool
	wake   chan struct{}
	spin   time.Duration
	slept  int64 // times
	_      [32]byte
}

func (g *gate) init(spin time.Duration) { g.wake, g.spin = make(chan struct{}, 1), spin }

// await returns when ready does, which another thread makes true before it calls open. If woken too
// early, it spins again.
func (g *gate) await(ready func() bool) {
	for !ready() {
		for begun := time.Now(); time.Since(begun) < g.spin; {
			for range 16 {
				if ready() {
					return
				}
				parallel.Pause()
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

// open wakes the thread that sleeps here.
func (g *gate) open() {
	if g.asleep.Load() && g.asleep.CompareAndSwap(true, false) {
		g.wake <- struct{}{}
	}
}
