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
//	t = step + requests request            t += layers (sync + bytes/rate)
//
// with bytes of the layer's lists, 4 for each selected block. It stands for
// fitHost, whose copies of the same lists are waited for both ways: the loop
// waits for one of them, and has to look blocks up.
func fitLive(s *Samples, p *hw.Profile, from source) []model {
	plain, offload := s.of(probeLive), s.of(probeLiveOffload)
	if len(plain) == 0 || len(offload) == 0 {
		return nil
	}
	requests := func(at datum) float64 { return float64(at.At("requests")) }
	most := slices.Max(plain.values("requests"))
	ends := func(at datum) bool { return at.At("requests") == 1 || at.At("requests") == most }
	fit, held := plain.split(together, 2, ends)
	c := linear(fit, one, requests)
	p.Host.Step = from.figure(math.Max(c[0], 0)*1e6, "us", "a decode step of the live loop, dense, KV in HBM: what GPU events do not see of it")
	p.Host.Request = perBlock(c[1], from, "the same, by requests")
	models := []model{{name: "host.step", fit: fit, held: held,
		price: func(p *hw.Profile, at datum) float64 { return p.HostStepSeconds(at.At("requests")) },
		draw:  picture{x: requests, xLabel: "requests"}}}

	layers := func(at datum) float64 { return float64(at.At("layers")) }
	listBytes := func(at datum) float64 {
		return 4 * requests(at) * float64(at.model.KVHeads) * liveBudget / blockTokens
	}
	step := func(at datum) float64 { return math.Max(c[0], 0) + requests(at)*math.Max(c[1], 0) }
	fit, held = offload.split(together, 2, ends)
	var rest data // a layer's part
	for _, at := range fit {
		at.seconds = (at.seconds - step(at)) / layers(at)
		rest = append(rest, at)
	}
	k := linear(rest, one, listBytes)
	const what = "a layer of the live loop, from the selection's way down to the first load: what GPU events see as idle"
	p.Host.LayerSync = from.figure(math.Max(k[0], callBound.low)*1e6, "us", what)
	p.Host.LayerRate = hw.Figure{}
	if k[1] > 0 {
		p.Host.LayerRate = from.figure(1/k[1]*1e-9, "GB/s", what+", by the bytes of its lists")
	}
	return append(models, model{name: "host.layer_sync", fit: fit, held: held,
		price: func(p *hw.Profile, at datum) float64 {
			return p.HostStepSeconds(at.At("requests")) + layers(at)*p.LayerSyncSeconds(int64(listBytes(at)))
		},
		draw: picture{x: requests, xLabel: "requests"}})
}

// hostOfLoads says what a layer's loads take of the host. No model has it: the
// more a layer loads, the less a block takes, since helpers share the work, and
// the live loop loads more than five times as much in a layer as the probe can
// make it do.
func hostOfLoads(s *Samples) (notes []string) {
	none := map[[2]int64]float64{}
	size := func(at datum) [2]int64 { return [2]int64{at.At("layers"), at.At("requests")} }
	for _, at := range s.of(probeLiveOffload) {
		none[size(at)] = at.seconds
	}
	for _, at := range s.of(probeLiveLoads) {
		if t, ok := none[size(at)]; ok {
			n := at.At("loads")
			notes = append(notes, fmt.Sprintf("host time of each of %d blocks that a layer loads, %d requests: %.2f us", n, at.At("requests"), (at.seconds-t)/float64(n*at.At("layers"))*1e6))
		}
	}
	return notes
}
