package cost

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// narrow models the time that weights of fewer than 16 bits save in a GEMM, without launches. One
// token waits for the bytes of the weights, B seconds. The additional time of more tokens in the
// measured t(n) is compute; bytes and compute add as the two legs of a right triangle. Compute
// takes at least r per token, its time per token at the most measured tokens. Each leg has its own
// ratio:
//
//	t'(n) = min(t, hypot(B bytes/2, F peak16/peak)),  F = max(sqrt(t^2 - B^2), n r)
//
// peak is the FP8 peak if weights have one byte and the card computes in FP8. Other weights are
// widened to 16 bits before the tensor cores.
type narrow struct {
	bytes, compute float64 // ratios to 16 bits
	flops          float64 // peak, FLOP/s
	alone, each    float64 // B and r of the measured shape, seconds
}

// newNarrow prices weights of the given bytes, from the measured times; launches is subtracted.
func newNarrow(p *hw.Profile, bytes float64, measured curve, launches float64) narrow {
	peak := peakOf(p)
	n := narrow{bytes: min(1, bytes/2), compute: 1, flops: peak.flops}
	if bytes == 1 {
		n.flops = p.GPU.PeakOf("fp8")
		n.compute = peak.flops / n.flops
	}
	last := measured.y[len(measured.y)-1] - launches
	n.alone = measured.y[0] - launches
	n.each = math.Sqrt(max(0, last*last-n.alone*n.alone)) / measured.last()
	return n
}

// of returns the time of n tokens, whose measured time with 16-bit weights is t.
func (w *narrow) of(t, n float64) float64 {
	if w.bytes == 1 {
		return t
	}
	flops := max(math.Sqrt(max(0, t*t-w.alone*w.alone)), n*w.each)
	return min(t, math.Hypot(w.alone*w.bytes, flops*w.compute))
}
