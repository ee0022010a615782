package calibrate

import (
	"fmt"
	"math"
	"slices"

	"sparseserve/hw"
)

// fitLive takes the host's time from the live loop itself: of a step, of each
// request in it, and with offloading of each layer, where the selection comes
// down and is looked up, and all that the next launches need goes up: lists of
// blocks and slots, and 16 bytes of addresses for each load.
//
//	t = step + requests request            t += layers (sync + requests layer_request + bytes/rate)
//
// with bytes of the layer's lists, 4 for each selected block. What a request takes
// however long its lists are needs samples of models with other numbers of KV
// heads, those of servers that requests leave. It stands for fitHost, whose copies of the same lists are waited for both ways: the loop
// waits for one of them, and has to look blocks up.
func fitLive(s *Samples, p *hw.Profile, from source) []model {
	plain, offload := s.of(probeLive), s.of(probeLiveOffload)
	if len(plain) == 0 || len(offload) == 0 {
		return nil
	}
	requests := func(at datum) float64 { return float64(at.At("requests")) }
	// Of what a step costs whatever its layers a shallow model sees less: gaps
	// between its layers' kernels count to it.
	deepest := slices.Max(plain.values("layers"))
	plain = plain.where(func(at datum) bool { return at.At("layers") == deepest })
	most := slices.Max(plain.values("requests"))
	ends := func(at datum) bool { return at.At("requests") == 1 || at.At("requests") == most }
	fit, held := plain.split(together, 2, ends)
	c := linear(fit, one, requests)
	p.Host.Step = from.figure(math.Max(c[0], 0)*1e6, "us", "a decode step of the live loop, dense, KV in HBM: what GPU events do not see of it")
	p.Host.Request = perBlock(c[1], from, "the same, by requests")
	models := []model{{name: "host.step", fit: fit, held: held,
		price: func(p *hw.Profile, at datum) float64 { return p.HostStepSeconds(at.At("requests")) },
		draw:  picture{x: requests, xLabel: "requests"}}}

	if len(p.Host.Turns) > 0 { // without the marks of split steps (fitTurns)
		return models
	}
	layers := func(at datum) float64 { return float64(at.At("layers")) }
	listBytes := func(at datum) float64 {
		return 4 * requests(at) * float64(at.model.KVHeads) * liveBudget / blockTokens
	}
	leaving := s.of(probeLiveLeaving)
	step := func(at datum) float64 { return math.Max(c[0], 0) + requests(at)*math.Max(c[1], 0) }
	byShape := func(at datum) string { return at.Probe + at.Shape }
	fit, held = append(offload, leaving...).split(byShape, 2, ends)
	terms := []func(datum) float64{one, listBytes, requests}
	if len(leaving.shapes()) < 2 {
		terms = terms[:2]
	}
	k := append(linear(layerParts(fit, step), terms...), 0)
	const what = "a layer of the live loop, from the selection's way down to the first load: what GPU events see as idle"
	p.Host.LayerSync = from.figure(math.Max(k[0], callBound.low)*1e6, "us", what)
	p.Host.LayerRate, p.Host.LayerRequest = hw.Figure{}, perBlock(k[2], from, what+", by requests")
	if k[1] > 0 {
		p.Host.LayerRate = from.figure(1/k[1]*1e-9, "GB/s", what+", by the bytes of its lists")
	}
	return append(models, model{name: "host.layer_sync", fit: fit, held: held,
		price: func(p *hw.Profile, at datum) float64 {
			return p.HostStepSeconds(at.At("requests")) + layers(at)*p.LayerSyncSeconds(int(at.At("requests")), int64(listBytes(at)))
		},
		draw: picture{x: requests, xLabel: "requests"}})
}

// layerParts is what each layer of a step takes beyond the step's own part.
func layerParts(d data, step func(datum) float64) (parts data) {
	for _, at := range d {
		at.seconds = (at.seconds - step(at)) / float64(at.At("layers"))
		parts = append(parts, at)
	}
	return parts
}

// mostLoads is how many blocks a layer has to load in some sample for a law of
// them: a block of a few hundred takes several times of what it takes among
// thousands, which runs load.
const mostLoads = 1000

// fitHostLoads finds what a layer's loads take of the host beside, from the same
// servers with and without them:
//
//	t = without + layers (n load + loads n/(n + loads_half))
func fitHostLoads(s *Samples, p *hw.Profile, from source) []model {
	h := &p.Host
	h.Load, h.Loads, h.LoadsHalf = hw.Figure{}, hw.Figure{}, hw.Figure{}
	without := stepsWithoutLoads(s)
	all := s.of(probeLiveLoads).where(func(at datum) bool { return without[liveSize(at)] > 0 })
	if len(all) < 4 || slices.Max(all.values("loads")) < mostLoads {
		return nil
	}
	blocks := func(at datum) float64 { return float64(at.At("loads")) }
	t := func(c []float64, at datum) float64 {
		n := blocks(at)
		return without[liveSize(at)] + float64(at.At("layers"))*(n*c[0]+c[1]*n/(n+c[2]))
	}
	fewest, most := slices.Min(all.values("loads")), slices.Max(all.values("loads"))
	fit, held := all.split(together, 4, func(at datum) bool { return at.At("loads") == fewest || at.At("loads") == most })
	c := refine(fit, []float64{2e-7, 4e-5, 50}, []bound{{1e-10, 1e-5}, {1e-8, 1e-3}, {1, 1000}}, t)
	const what = "what each layer's loads take of a decode step of the live loop: what GPU events see as idle, over the same without loads"
	h.Load = perBlock(c[0], from, what+", by blocks")
	if h.Loads = perBlock(c[1], from, what); h.Loads.Set() {
		h.LoadsHalf = from.figure(c[2], "blocks", "of a layer, at which half of loads is paid")
	}
	return []model{{name: "host.loads", fit: fit, held: held, draw: picture{x: blocks, xLabel: "blocks that a layer loads"},
		price: func(p *hw.Profile, at datum) float64 {
			return without[liveSize(at)] + float64(at.At("layers"))*p.HostLoadsSeconds(at.At("loads"))
		}}}
}

func liveSize(at datum) [2]int64 { return [2]int64{at.At("layers"), at.At("requests")} }

// stepsWithoutLoads is the host's time of servers that load nothing.
func stepsWithoutLoads(s *Samples) map[[2]int64]float64 {
	t := map[[2]int64]float64{}
	for _, at := range s.of(probeLiveOffload) {
		t[liveSize(at)] = at.seconds
	}
	return t
}

// hostOfLoads says what a layer's loads take of the host, block by block.
func hostOfLoads(s *Samples) (notes []string) {
	none := stepsWithoutLoads(s)
	for _, at := range s.of(probeLiveLoads) {
		if t, ok := none[liveSize(at)]; ok {
			n := at.At("loads")
			notes = append(notes, fmt.Sprintf("host time of each of %d blocks that a layer loads, %d requests: %.2f us", n, at.At("requests"), (at.seconds-t)/float64(n*at.At("layers"))*1e6))
		}
	}
	return notes
}
