package aic

import (
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// Of a table whose large sizes run at HBM's rate, only small sizes that are faster count as cached.
func TestCachedTimes(t *testing.T) {
	card, err := hw.LoadCard("l40s")
	if err != nil {
		t.Fatal(err)
	}
	const launch, rate = 0.002, 800e6 // ms, bytes per ms
	h, l2 := newHBM(card), card.GPU.L2Size.SI()
	h.add(1, launch)
	for _, sizes := range []float64{5, 10, 100} {
		h.add(sizes*l2, launch+sizes*l2/rate)
	}
	for _, c := range []struct {
		bytes, faster float64
		cached        bool
	}{
		{l2 / 10, 1, false}, {l2 / 10, 3, true}, {l2, 1.3, true}, {3 * l2, 1.3, false},
	} {
		ms := launch + c.bytes/rate/c.faster
		if got := h.isCached(c.bytes, ms); got != c.cached {
			t.Errorf("%g bytes at %g times HBM's rate: cached is %t", c.bytes, c.faster, got)
		}
	}
	if small := newHBM(card); small.isCached(l2, launch/1000) {
		t.Error("a table without large sizes has no rate of HBM, yet a time counts as cached")
	}
}
