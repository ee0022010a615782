package dsa

// PSALayer is PSA with one decision for the heads of a layer. The paper's threshold is the
// attention "required for each layer of a query token", its budget one "for each layer of each
// query token", and what leaves the batch is the query token (§1, §3.2): all heads of a layer
// go on, a microbatch each, until the mean of what they take themselves to have seen passes
// Epsilon.
type PSALayer struct{ PSA }

// Picks implements ByLayer: a stop is the end of a microbatch.
func (p PSALayer) Picks(stop, n, kept int) int {
	return min(n, (Microbatches(p.Microbatch, kept, 0)+stop)*p.Microbatch-kept)
}

// Say implements ByLayer: what share of its attention a head takes itself to have seen at each
// stop.
func (p PSALayer) Say(v *View, at func(i int) int, stops int, dst []float32) []float32 {
	var s seen
	s.begin(v)
	for stop := range stops {
		dst = append(dst, float32(s.upTo(v, p.Picks(stop, len(v.Critical), len(v.Kept)), at)))
	}
	return dst
}

// Agree implements ByLayer. The estimate only grows with the stop.
func (p PSALayer) Agree(n, kept, guess int, mean func(i int) float64) (stop, load int) {
	for stop = guess; stop > 0 && (p.Picks(stop-1, n, kept) == n || mean(stop-1) > p.Epsilon); {
		stop--
	}
	for stop >= guess && p.Picks(stop, n, kept) < n && mean(stop) <= p.Epsilon {
		stop++
	}
	return stop, stop + p.Ahead
}
