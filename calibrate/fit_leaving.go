package calibrate

import "sparseserve/hw"

// fitLeaving takes from servers that requests leave what the host does beside the
// round trips of layers in which nothing changes. Where none was measured the
// profile is without.
func fitLeaving(s *Samples, p *hw.Profile, from source) []model {
	h := &p.Host
	h.WholeList, h.FreedBlock = hw.Figure{}, hw.Figure{}
	const whole = "of a request with a new block, whose lists are looked up whole: what a step of the live loop takes longer, for each list of a layer"
	lists := func(at datum) float64 { return float64(at.At("layers") * int64(at.model.KVHeads)) }
	if d := s.of(probeLiveWhole); len(d) > 0 {
		h.WholeList = perBlock(shareOf(d, lists), from, whole)
	}
	if d := s.of(probeLiveFreed); len(d) > 0 {
		blocks := func(at datum) float64 { return lists(at) * livePrompt / blockTokens }
		h.FreedBlock = perBlock(shareOf(d, blocks), from, "what a step of the live loop takes longer behind a request's end, for each of its blocks in each layer and KV head")
	}
	return fitPSALayers(s, p, from)
}

// shareOf is the median over the points of their time for each of so many things.
func shareOf(d data, things func(datum) float64) float64 {
	var each []float64
	for _, at := range d {
		each = append(each, at.seconds/things(at))
	}
	return medianOf(each).Value
}

// fitPSALayers fits a layer's round trip where attention is progressive:
//
//	t = step + requests request + layers (psa_layer + requests psa_request + bytes/psa_rate)
//
// with bytes of lists as long as the layer's longest. It needs the step's part.
func fitPSALayers(s *Samples, p *hw.Profile, from source) []model {
	h := &p.Host
	if len(h.PSATurns) > 0 { // without the marks of split steps (fitTurns)
		return nil
	}
	h.PSALayer, h.PSARequest, h.PSARate = hw.Figure{}, hw.Figure{}, hw.Figure{}
	all := s.of(probeLivePSA)
	if len(all.shapes()) < 2 || len(s.of(probeLive)) == 0 {
		return nil
	}
	requests := func(at datum) float64 { return float64(at.At("requests")) }
	bytes := func(at datum) float64 {
		return 4 * requests(at) * float64(at.model.KVHeads) * float64(at.At("rounds")*psaMicro)
	}
	fit, held := all.split(func(at datum) string { return at.Shape }, 2, isEnd(all))
	c := linear(layerParts(fit, func(at datum) float64 { return p.HostStepSeconds(at.At("requests")) }), one, requests, bytes)
	const what = "a layer of the live loop with PSA, from the selection's way down to the first load: what GPU events see as idle"
	h.PSALayer = perBlock(max(c[0], callBound.low), from, what)
	h.PSARequest = perBlock(c[1], from, what+", by requests")
	if c[2] > 0 {
		h.PSARate = from.figure(1/c[2]*1e-9, "GB/s", what+", by the bytes of lists as long as the longest")
	}
	return []model{{name: "host.psa_layer", fit: fit, held: held, draw: picture{x: requests, xLabel: "requests"},
		price: func(p *hw.Profile, at datum) float64 {
			return p.HostStepSeconds(at.At("requests")) + float64(at.At("layers"))*p.PSALayerSeconds(int(at.At("requests")), int64(bytes(at)))
		}}}
}

// isEnd says whether a point is of the fewest or the most requests of its shape.
func isEnd(all data) func(datum) bool {
	return func(at datum) bool {
		n := all.where(func(o datum) bool { return o.Shape == at.Shape }).values("requests")
		return at.At("requests") == n[0] || at.At("requests") == n[len(n)-1]
	}
}
