package hw

import "math"

// stream is a kernel bound by HBM bytes: decode attention over whole contexts
// or over selected blocks, and the scoring of block metadata.
//
//	t = max(floor, launch + bytes/rate), at least max(FLOPs/peak, bytes/HBM)
//
// A small launch leaves the card half idle: the floor is the time of one
// request alone.
type stream struct {
	peak                peak
	launch, floor, rate float64
	largest             float64 // bytes measured; 0 when not said
	bytesEach           float64 // HBM bytes per item
	flopsEach           float64 // FLOPs per item
	perRequest          float64 // seconds; of scoring
}

// newStream prices items (tokens or blocks) of the given bytes and FLOPs.
func newStream(p *Profile, s Stream, bytesEach, flopsEach float64) stream {
	k := stream{
		peak: p.peak(), launch: s.Launch.SI(), rate: s.Rate.SI(),
		bytesEach: bytesEach, flopsEach: flopsEach,
	}
	if s.Floor.Set() {
		k.floor = s.Floor.SI()
	}
	if s.Largest.Set() {
		k.largest = s.Largest.SI()
	}
	return k
}

// newDense prices a KV token of one layer, all KV heads: 2 KVHeads d elements,
// 4 d FLOPs for each query head.
func newDense(p *Profile, m *Model) stream {
	return newStream(p, p.DenseDecode, float64(m.LayerKVBytesPerToken()), 4*float64(m.QHeads*m.HeadDim))
}

// newSparse prices a selected KV token as newDense does.
func newSparse(p *Profile, m *Model) stream {
	return newStream(p, p.SparseDecode, float64(m.LayerKVBytesPerToken()), 4*float64(m.QHeads*m.HeadDim))
}

// newScoring prices a block's metadata in all KV heads: two vectors against
// each query head. Choosing the blocks also costs a time per request and head.
func newScoring(p *Profile, m *Model) stream {
	k := newStream(p, p.Scoring, float64(int64(m.KVHeads)*m.MetaBytesPerBlock()), 4*float64(m.QHeads*m.HeadDim))
	k.perRequest = p.Scoring.PerHead.optional() * float64(m.KVHeads)
	return k
}

// seconds returns the time of n items and whether they are more than measured.
func (k *stream) seconds(n float64) (t float64, outside bool) { return k.secondsOf(n, 0) }

// secondsOf is seconds for items of a number of requests.
func (k *stream) secondsOf(n, requests float64) (t float64, outside bool) {
	if n <= 0 {
		return 0, false
	}
	bytes := n * k.bytesEach
	t = math.Max(k.floor, k.launch+requests*k.perRequest+bytes/k.rate)
	return math.Max(t, k.peak.floor(n*k.flopsEach, bytes)), k.largest > 0 && bytes > k.largest
}
