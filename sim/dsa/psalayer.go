package dsa

// PSALayer is PSA with one decision for the heads of a layer. The paper's threshold is the
// attention "required for each layer of a query token", its budget one "for each layer of each
// query token", and what leaves the batch is the query token (§1, §3.2): all heads of a layer
// go on, a microbatch each, until the mean of what they take themselves to have seen passes
// Epsilon.
type PSALayer struct{ PSA }

// CountAt implements ByLayer: a stop is the end of a microbatch.
func (p PSALayer) CountAt(stop, n, kept int) int {
	return min(n, (Microbatches(p.Microbatch, kept, 0)+stop)*p.Microbatch-kept)
}

// Report implements ByLayer: what share of its attention a head takes itself to have seen at each
// stop.
func (p PSALayer) Report(v *View, at func(i int) int, stops int, dst []float32) []float32 {
	var s seen
	s.begin(v)
	for stop := range stops {
		dst = append(dst, float32(s.upTo(v, p.CountAt(stop, len(v.Critical), len(v.Kept)), at)))
	}
	return dst
}

// Decide implements ByLayer. What a head takes itself to have seen only grows.
func (p PSALayer) Decide(n, kept, guess int, mean func(i int) float64) (stop, load int) {
	for stop = guess; stop > 0 && (p.CountAt(stop-1, n, kept) == n || mean(stop-1) > p.Epsilon); {
		stop--
	}
	for stop >= guess && p.CountAt(stop, n, kept) < n && mean(stop) <= p.Epsilon {
		stop++
	}
	return stop, stop + p.Ahead
}
