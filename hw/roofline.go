package hw

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
)

// peak holds the card's limits in FLOP/s and bytes/s.
type peak struct {
	flops, hbm float64
}

func (p *Profile) peak() peak {
	return peak{flops: p.GPU.PeakFP16.SI(), hbm: p.GPU.HBMBandwidth.SI()}
}

// floor returns the least seconds for the given work (law 10): the longer of FLOPs at peak and HBM
// bytes at peak.
func (k peak) floor(flops, bytes float64) float64 {
	return max(flops/k.flops, bytes/k.hbm)
}

// nanoseconds rounds seconds up, so that rounding never undercuts a lower bound.
func nanoseconds(seconds float64) des.Time {
	return des.Time(math.Ceil(seconds * 1e9))
}
