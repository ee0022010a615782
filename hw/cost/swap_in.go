package cost

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim/des"
)

// LoadSwap is one kernel a layer that finds, evicts and loads rows of hot buffers (HiSparse).
const LoadSwap = "swap"

// swapIn prices SwapCost. Without measurements it takes FlashH2D's figures, and the walk is free.
type swapIn struct {
	launch, scan, sms float64
	slots             int     // of a buffer
	request           float64 // bytes/s of one request's loads
	measured          bool
}

func newSwapIn(p *hw.Profile, slots int) *swapIn {
	s := &swapIn{launch: p.Load.FlashLaunch.SI(), sms: p.GPU.SMs.SI(), slots: slots,
		request: math.Inf(1)}
	if f := &p.Load.Swap; f.Rate.Set() {
		s.launch, s.scan, s.measured = f.Launch.SI(), f.Scan.SI(), true
		s.request = f.RequestRate.SI()
	}
	return s
}

// walk returns the kernel's time for the given requests without loads.
func (s *swapIn) walk(requests int) des.Time { return nanoseconds(s.seconds(requests)) }

func (s *swapIn) seconds(requests int) float64 {
	if requests == 0 {
		return 0
	}
	waves := math.Ceil(float64(requests) / s.sms)
	return s.launch + math.Max(1, waves)*float64(s.slots)/1024*s.scan
}

// swapIn sets the cost of loads beyond the walk.
func (t *transfer) swapIn(f *hw.Loading) {
	if f.Swap.Rate.Set() {
		t.rate = f.Swap.Rate.SI()
		return
	}
	t.flashH2D(f)
	t.launch, t.floor = 0, 0
}

// longest returns the time to load the rows of the request with most misses, seconds.
func (s *swapIn) longest(bytes int64) float64 { return float64(bytes) / s.request }

// SwapSeconds returns the seconds of one launch for the given requests with buffers of the given
// slots. Each request misses misses rows.
func SwapSeconds(p *hw.Profile, requests, slots int, misses, rowBytes int64) (float64, error) {
	t, err := newLoader(p, LoadSwap)
	if err != nil {
		return 0, err
	}
	s, rows := newSwapIn(p, slots), int64(requests)*misses
	loads := math.Max(t.seconds(rows, rowBytes), s.longest(misses*rowBytes))
	return math.Max(s.seconds(requests)+loads, float64(rows*rowBytes)/t.link), nil
}
