package calibrate

import "sparseserve/hw"

// fitCPU takes from the live loop what the CPU is busy for a layer whose lists the
// GPU looks up, beside the GPU's work, less what a step has besides (fitLive):
//
//	t = host.step + requests host.request + layers (cpu_layer + requests cpu_request + bytes/cpu_rate + loads cpu_load)
//
// with bytes of the layer's lists, 4 for each selected block. What a request takes
// however long its lists are needs models with other numbers of KV heads.
func fitCPU(s *Samples, p *hw.Profile, from source) []model {
	h := &p.Host
	h.CPULayer, h.CPURequest, h.CPURate, h.CPULoad = hw.Figure{}, hw.Figure{}, hw.Figure{}, hw.Figure{}
	all := s.of(probeLiveCPU)
	hits := all.where(func(at datum) bool { return at.At("missing") == 0 })
	if len(hits) < 2 {
		return nil
	}
	layers := func(at datum) float64 { return float64(at.At("layers")) }
	listed := func(at datum) int64 { return at.At("requests") * int64(at.model.KVHeads) * liveBudget / blockTokens }
	bytes := func(at datum) float64 { return float64(4 * listed(at)) }
	layer := func(at datum) float64 { return (at.seconds - p.HostStepSeconds(at.At("requests"))) / layers(at) }
	ends := isEnd(hits)
	fit, held := all.split(together, 4, func(at datum) bool { return ends(at) || at.At("missing") > 0 })
	var rest data
	for _, at := range fit {
		at.seconds = layer(at)
		rest = append(rest, at)
	}
	terms := []func(datum) float64{one, bytes, func(at datum) float64 { return float64(at.At("requests")) }}
	if len(hits.shapes()) < 2 {
		terms = terms[:2]
	}
	c := append(linear(rest.where(func(at datum) bool { return at.At("missing") == 0 }), terms...), 0)
	const what = "a layer of the live loop whose lists the GPU looks up: what the CPU is busy"
	if h.CPULayer = perBlock(c[0], from, what); !h.CPULayer.Set() {
		return nil
	}
	h.CPURequest = perBlock(c[2], from, what+", by requests")
	if c[1] > 0 {
		h.CPURate = from.figure(1/c[1]*1e-9, "GB/s", what+", by the bytes of its lists")
	}
	if load := loadOfCPU(rest, func(at datum) float64 { return p.CPUSeconds(int(at.At("requests")), listed(at), 0) }); load > 0 {
		h.CPULoad = perBlock(load, from, "the same, by blocks that are missing")
	}
	return []model{{name: "host.cpu_layer", fit: fit, held: held,
		price: func(p *hw.Profile, at datum) float64 {
			return p.HostStepSeconds(at.At("requests")) + layers(at)*p.CPUSeconds(int(at.At("requests")), listed(at), at.At("missing"))
		},
		draw: picture{x: bytes, xLabel: "bytes of lists"}}}
}

// fitCPUPSA is the same where attention is progressive:
//
//	t = host.step + requests host.request + layers (cpu_psa_layer + requests cpu_psa_request + bytes/cpu_psa_rate + loads cpu_psa_load)
//
// with bytes of lists as long as the layer's longest. Layers that load have their
// rounds beside, which Device.rounds prices.
func fitCPUPSA(s *Samples, p *hw.Profile, from source) []model {
	h := &p.Host
	h.CPUPSALayer, h.CPUPSARequest, h.CPUPSARate, h.CPUPSALoad = hw.Figure{}, hw.Figure{}, hw.Figure{}, hw.Figure{}
	all := s.of(probeLiveCPUPSA)
	hits := all.where(func(at datum) bool { return at.At("missing") == 0 })
	if len(hits.shapes()) < 2 || len(hits) < 4 {
		return nil
	}
	requests := func(at datum) float64 { return float64(at.At("requests")) }
	layers := func(at datum) float64 { return float64(at.At("layers")) }
	listed := func(at datum) int64 { return int64(turnBytes(at)) / 4 }
	fit, held := all.split(func(at datum) string { return at.Shape }, 3, func(at datum) bool {
		return isEnd(hits)(at) || at.At("missing") > 0 && len(all)-len(hits) < 3
	})
	parts := layerParts(fit, func(at datum) float64 { return p.HostStepSeconds(at.At("requests")) })
	c := linear(parts.where(func(at datum) bool { return at.At("missing") == 0 }), one, requests, turnBytes)
	const what = "a layer of the live loop with PSA whose lists the GPU looks up: what the CPU is busy, rounds that load apart"
	if h.CPUPSALayer = perBlock(c[0], from, what); !h.CPUPSALayer.Set() {
		return nil
	}
	h.CPUPSARequest = perBlock(c[1], from, what+", by requests")
	if c[2] > 0 {
		h.CPUPSARate = from.figure(1/c[2]*1e-9, "GB/s", what+", by the bytes of lists as long as the longest")
	}
	if load := loadOfCPU(parts, func(at datum) float64 { return p.CPUPSASeconds(int(at.At("requests")), listed(at), 0) }); load > 0 {
		h.CPUPSALoad = perBlock(load, from, "the same, by blocks that are missing")
	}
	return []model{{name: "host.cpu_psa_layer", fit: fit, held: held, draw: picture{x: requests, xLabel: "requests"},
		price: func(p *hw.Profile, at datum) float64 {
			return p.HostStepSeconds(at.At("requests")) + layers(at)*p.CPUPSASeconds(int(at.At("requests")), listed(at), at.At("missing"))
		}}}
}

// loadOfCPU is what a layer takes longer for each block that is missing: over all
// layers, as what few blocks take is lost in the rest.
func loadOfCPU(layers data, hits func(datum) float64) float64 {
	over, missing := 0.0, 0.0
	for _, at := range layers {
		if n := at.At("missing"); n > 0 {
			over += at.seconds - hits(at)
			missing += float64(n)
		}
	}
	if missing == 0 {
		return 0
	}
	return over / missing
}
