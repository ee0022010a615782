package hw

import "math"

// narrow is what weights of fewer than 16 bits save of a GEMM's time, launches apart. A token alone
// waits for the bytes of the weights, B seconds; what more tokens add to the measured t(n), as the
// other side of a right angle, are FLOPs, no faster for each than the most tokens that were
// measured, of rate r. Each side has a ratio of its own:
//
//	t'(n) = min(t, hypot(B bytes/2, F peak16/peak)),  F = max(sqrt(t^2 - B^2), n r)
//
// peak is that of FP8 where weights have one byte and the card computes with them; all others are
// widened to 16 bits on the way to the tensor cores.
type narrow struct {
	bytes, compute float64 // ratios to 16 bits
	flops          float64 // peak, FLOP/s
	alone, each    float64 // B, and r, of the measured shape, seconds
}

// newNarrow returns that of weights of so many bytes each, with the measured times, launches apart.
func newNarrow(p *Profile, bytes float64, measured curve, launches float64) narrow {
	peak := p.peak()
	n := narrow{bytes: min(1, bytes/2), compute: 1, flops: peak.flops}
	if bytes == 1 {
		n.flops = p.peakFP8()
		n.compute = peak.flops / n.flops
	}
	last := measured.y[len(measured.y)-1] - launches
	n.alone = measured.y[0] - launches
	n.each = math.Sqrt(max(0, last*last-n.alone*n.alone)) / measured.last()
	return n
}

// peakFP8 is the peak of FP8 arithmetic, FLOP/s; that of FP16 where the card has none.
func (p *Profile) peakFP8() float64 {
	if p.GPU.PeakFP8.Set() {
		return p.GPU.PeakFP8.SI()
	}
	return p.GPU.PeakFP16.SI()
}

// peakFP4 is the peak of FP4 arithmetic, FLOP/s; that of FP8 where the card has none.
func (p *Profile) peakFP4() float64 {
	if p.GPU.PeakFP4.Set() {
		return p.GPU.PeakFP4.SI()
	}
	return p.peakFP8()
}

// of is how long n tokens last that were measured to last t.
func (w *narrow) of(t, n float64) float64 {
	if w.bytes == 1 {
		return t
	}
	flops := max(math.Sqrt(max(0, t*t-w.alone*w.alone)), n*w.each)
	return min(t, math.Hypot(w.alone*w.bytes, flops*w.compute))
}
