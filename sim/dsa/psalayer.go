package dsa

// PSALayer is PSA with one decision for all heads of a layer, as in the paper's words: the
// threshold is the attention "required for each layer of a query token" (§1, §3.2). All heads
// of a layer attend to another microbatch until the mean of their estimates passes Epsilon.
type PSALayer struct{ PSA }

// CountAt implements ByLayer: a stop is the end of a microbatch.
func (p PSALayer) CountAt(stop, n, kept int) int {
	return min(n, (Microbatches(p.Microbatch, kept, 0)+stop)*p.Microbatch-kept)
}

// Report implements ByLayer: a head's estimate of the share seen at each stop.
func (p PSALayer) Report(v *View, at func(i int) int, stops int, dst []float32) []float32 {
	var s seen
	s.begin(v)
	for stop := range stops {
		dst = append(dst, float32(s.upTo(v, p.CountAt(stop, len(v.Critical), len(v.Kept)), at)))
	}
	return dst
}

// Decide implements ByLayer. It relies on an estimate that grows monotonically with the stop.
func (p PSALayer) Decide(n, kept, guess int, mean func(i int) float64) (stop, load int) {
	for stop = guess; stop > 0 && (p.CountAt(stop-1, n, kept) == n || mean(stop-1) > p.Epsilon); {
		stop--
	}
	for stop >= guess && p.CountAt(stop, n, kept) < n && mean(stop) <= p.Epsilon {
		stop++
	}
	return stop, stop + p.Ahead
}
