package calibrate

import "github.com/sparseserve/sparseserve/hw"

// roundTrip is the time per layer that the GPU waits for the CPU with offloading. It is the
// difference between the steps of two servers: one offloads, the other keeps KV in HBM. Their steps
// are not split into phases, because the events around the selection's copy would add to the wait.
type roundTrip struct{}

const probeLiveUnsplit = "live.unsplit"

func (roundTrip) probes() []Probe {
	return []Probe{{Name: probeLiveUnsplit, serve: draining(drainConfig{}, (*drainTimes).steadyAt),
		Means: "steps of a server whose batch drains, with selected blocks and offloading, looked up " +
			"by the CPU, in which nothing changes: all of the step",
		Axes: []string{"layers", "requests"}, shaped: true, again: always,
		fixed: drainSamples, reduction: byVisits}}
}

func (roundTrip) points(p *planner) {
	for i, shape := range shapes {
		for _, at := range drainPoints(probeLiveUnsplit, shape, p.layers(), drainConfig{}) {
			p.addAt(stageRoundTrip, rank{i}, at)
		}
	}
}

// roundTripData returns the time of a layer's round trip:
//
//	t = (offloading - held)/layers
func roundTripData(s *Samples) data {
	trips := s.of(probeLiveUnsplit).beyond(s.of(probeLiveHeld), pointKey).where(positive)
	for i := range trips {
		layers := float64(trips[i].At("layers"))
		trips[i].seconds /= layers
		trips[i].within /= layers
	}
	return trips
}

// listBytes returns the bytes of a layer's lists.
func listBytes(at observation) float64 {
	return float64(4 * at.At("requests") * int64(at.model.KVHeads) * liveBudget / blockTokens)
}

// fit fits t = sync + requests * request + bytes/rate over all models.
func (roundTrip) fit(s *Samples, p *hw.Profile, from source) []model {
	h := &p.Host
	trips := roundTripData(s)
	if len(trips.shapes()) < 2 || len(trips) < 6 {
		return nil // it stays as it was
	}
	const what = "a layer of the live loop, from the selection's way down to the first load: a step " +
		"over the same with KV in HBM alone"
	fit, held := trips.split(func(at observation) string { return at.Shape }, 3, isEnd(trips))
	c := linear(fit, one, requests, listBytes)
	h.LayerSync = from.figure(max(c[0], callBound.low)*1e6, "us", what)
	h.LayerRequest, h.LayerRate = perBlock(c[1], from, what+", by requests"), hw.Figure{}
	if c[2] > 0 {
		h.LayerRate = from.gbps(1/c[2], what+", by the bytes of its lists")
	}
	return []model{{name: "host.layer_sync", fit: fit, held: held,
		draw: picture{x: requests, xLabel: "requests"},
		price: func(p *hw.Profile, at observation) float64 {
			return p.LayerSyncSeconds(int(at.At("requests")), int64(listBytes(at)))
		}}}
}

// isEnd reports whether a point has the fewest or the most requests of its shape.
func isEnd(all data) func(observation) bool {
	return func(at observation) bool {
		n := all.where(func(o observation) bool { return o.Shape == at.Shape }).values("requests")
		return at.At("requests") == n[0] || at.At("requests") == n[len(n)-1]
	}
}
