package hw

// narrow is what weights of fewer than 16 bits save of a GEMM's time, launches apart. Which of a
// measured time waits for bytes and which for FLOPs no measurement separates: both ratios count by
// the squares of the two floors, so that whichever binds decides (KernelCosts.on).
//
//	share(n) = (b^2 bytes/2 + f^2 peak16/peak) / (b^2 + f^2),  b = 2 W / HBM,  f = 2 W n / peak16
//
// peak is that of FP8 where weights have one byte and the card computes with them; all others are
// widened to 16 bits on the way to the tensor cores.
type narrow struct {
	bytes, compute float64 // ratios to 16 bits
	crossing       float64 // tokens at which both floors of 16 bits are alike
	flops          float64 // peak, FLOP/s
}

func newNarrow(p *Profile, bytes float64) narrow {
	peak := p.peak()
	n := narrow{bytes: min(1, bytes/2), compute: 1, crossing: peak.flops / peak.hbm, flops: peak.flops}
	if bytes == 1 {
		n.flops = p.peakFP8()
		n.compute = peak.flops / n.flops
	}
	return n
}

// peakFP8 is the peak of FP8 arithmetic, FLOP/s; that of FP16 where the card has none.
func (p *Profile) peakFP8() float64 {
	if p.GPU.PeakFP8.Set() {
		return p.GPU.PeakFP8.SI()
	}
	return p.GPU.PeakFP16.SI()
}

// share is by how much the time of n tokens is multiplied.
func (w *narrow) share(n float64) float64 {
	if w.bytes == 1 && w.compute == 1 {
		return 1
	}
	b, f := w.crossing*w.crossing, n*n
	return (b*w.bytes + f*w.compute) / (b + f)
}
