package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/sim/des"
)

// With their caller, half of the cores stay awake from step to step, as many helpers as a layer's
// calls keep busy from layer to layer, and the others until its next call.
func TestHelpersStayAwake(t *testing.T) {
	for procs, want := range map[int]int{1: 0, 2: 0, 4: 1, 8: 3, 15: 7, 16: 7} {
		if got := alwaysAwake(procs); got != want {
			t.Errorf("%d helpers stay awake on %d cores, want %d", got, procs, want)
		}
	}
	var c crew
	c.always.Store(2)
	call := newNotice(1, 8, 5)
	for rank, want := range []time.Duration{awakeLong, awakeLong, awakeStep, awakeStep, awakeStep,
		awakeShort, awakeShort, awakeShort} {
		h := helper{rank: rank}
		if got := h.staysFor(&c, call); got != want {
			t.Errorf("helper %d stays awake for %v after a call that keeps %d, want %v", rank, got,
				call.stay(), want)
		}
	}
}

// A call's indices are dealt out once each, also to more threads than exist, and again to fewer and
// to more.
func TestCallsAreDivided(t *testing.T) {
	var c crew
	for _, threads := range []int{4, 1, 7, 3} {
		for n := 1; n < 20; n++ {
			c.divide(n, threads)
			at := int64(0)
			for i := range c.parts {
				if from := c.parts[i].next.Load(); from != at || c.parts[i].end < from {
					t.Errorf("%d of %d on %d: from %d to %d, want it from %d", i, n, threads, from,
						c.parts[i].end, at)
				}
				at = c.parts[i].end
			}
			if at != int64(n) || len(c.parts) != threads {
				t.Errorf("%d on %d threads: %d parts, the last ends at %d", n, threads, len(c.parts), at)
			}
		}
	}
}

// Several callers at a time, on more threads than there are cores, with helpers that
// sleep between: every index is done once.
func TestManyHelpersDoEverythingOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	var callers sync.WaitGroup
	for caller := range 3 {
		callers.Go(func() {
			for round := range 100 {
				n := 1 + (round*7+caller)%64
				counts := make([]int32, n)
				Do(n, des.Time(round%5)*30*des.Microsecond, func(i int) { atomic.AddInt32(&counts[i], 1) })
				for i, k := range counts {
					if k != 1 {
						t.Errorf("round %d: index %d of %d was done %d times", round, i, n, k)
					}
				}
				time.Sleep(time.Duration(round%4) * 700 * time.Microsecond)
			}
		})
	}
	callers.Wait()
	if got, want := int(helpers.always.Load()), alwaysAwake(8); got != want {
		t.Errorf("%d helpers stay awake, want %d", got, want)
	}
}

// Every index once and all done at the return, by helpers awake and asleep, from
// within a call and from several at a time.
func TestDoCallsEverythingOnce(t *testing.T) {
	for round := range 300 {
		n := 1 + round*7%64
		counts := make([]int32, n)
		Do(n, des.Time(round%5*round%5)*20*des.Microsecond, func(i int) {
			Do(2, des.Millisecond, func(int) { atomic.AddInt32(&counts[i], 1) })
		})
		for i, k := range counts {
			if k != 2 {
				t.Fatalf("round %d: index %d of %d was done %d times, want 2", round, i, n, k)
			}
		}
		if round%100 == 99 {
			time.Sleep(2 * awakeLong) // the helpers sleep
		}
	}
	Do(0, des.Second, func(int) { t.Error("called for none") })
}
