package calibrate

import "github.com/sparseserve/sparseserve/hw"

// freeBlock is the host's work for the blocks of a finished request.
type freeBlock struct{}

const probeLiveFreed = "live.step_freed"

func (freeBlock) probes() []Probe {
	return []Probe{{Name: probeLiveFreed, serve: draining(drainConfig{}, (*drainTimes).longer),
		Means: "steps of that server after a request's end, whose blocks the cache frees: by how much " +
			"they are longer",
		Axes: []string{"layers", "requests"}, shaped: true, again: always,
		fixed: drainSamples, reduction: byVisits}}
}

func (freeBlock) points(p *planner) {
	for i, shape := range shapes {
		p.addAt(stageRoundTrip, rank{i, 1}, point(probeLiveFreed, shape, p.layers(), drainMost(shape)))
	}
}

// fit fits the host's time for the blocks of a finished request, from a draining server. Without
// such samples the profile has no figure.
func (freeBlock) fit(s *Samples, p *hw.Profile, from source) []model {
	p.Host.FreeBlock = hw.Figure{}
	if d := s.of(probeLiveFreed); len(d) > 0 {
		blocks := func(at observation) float64 {
			return float64(at.At("layers") * int64(at.model.KVHeads) * livePrompt / blockTokens)
		}
		p.Host.FreeBlock = perBlock(shareOf(d, blocks), from,
			"what a step of the live loop takes longer after a request's end, for each of its blocks in "+
				"each layer and KV head")
	}
	return nil
}

// shareOf returns the median over the points of the time per thing.
func shareOf(d data, things func(observation) float64) float64 {
	var each []float64
	for _, at := range d {
		each = append(each, at.seconds/things(at))
	}
	return medianOf(each).Value
}
