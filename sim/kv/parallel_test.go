package kv

import (
	"sync/atomic"
	"testing"
	"time"
)

// A quarter of the cores stay awake from step to step, as many helpers as a layer's
// calls keep busy from layer to layer, and the others until its next call.
func TestHelpersStayAwake(t *testing.T) {
	var c crew
	c.always.Store(2)
	call := newNotice(1, 8, 5)
	for rank, want := range []time.Duration{awakeLong, awakeLong, awakeStep, awakeStep, awakeStep, awakeShort, awakeShort, awakeShort} {
		h := helper{rank: rank}
		if got := h.staysFor(&c, call); got != want {
			t.Errorf("helper %d stays awake for %v after a call that keeps %d, want %v", rank, got, call.stay(), want)
		}
	}
}

// Every index once and all done at the return, by helpers awake and asleep, from
// within a call and from several at a time.
func TestSideBySideDoesEverythingOnce(t *testing.T) {
	for round := range 300 {
		n := 1 + round*7%64
		counts := make([]int32, n)
		SideBySide(n, time.Duration(round%5*round%5)*20*time.Microsecond, func(i int) {
			SideBySide(2, time.Millisecond, func(int) { atomic.AddInt32(&counts[i], 1) })
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
	SideBySide(0, time.Second, func(int) { t.Error("called for none") })
}
