package calibrate

import "github.com/sparseserve/sparseserve/hw"

// fitFreed takes from a server that requests leave what the host does for the blocks of
// one that ended. Where none was measured the profile is without.
func fitFreed(s *Samples, p *hw.Profile, from source) {
	p.Host.FreedBlock = hw.Figure{}
	if d := s.of(probeLiveFreed); len(d) > 0 {
		blocks := func(at datum) float64 {
			return float64(at.At("layers") * int64(at.model.KVHeads) * livePrompt / blockTokens)
		}
		p.Host.FreedBlock = perBlock(shareOf(d, blocks), from, "what a step of the live loop takes longer behind a request's end, for each of its blocks in each layer and KV head")
	}
}

// shareOf is the median over the points of their time for each of so many things.
func shareOf(d data, things func(datum) float64) float64 {
	var each []float64
	for _, at := range d {
		each = append(each, at.seconds/things(at))
	}
	return medianOf(each).Value
}
