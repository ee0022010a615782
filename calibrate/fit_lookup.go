package calibrate

import (
	"slices"

	"sparseserve/hw"
)

// fitLookup fits the GPU's lookup of a layer's lists, t = lookup + bytes/rate, and
// what it takes longer where blocks are missing, any + each missing: misses are
// numbered over all CTAs, and then each is given its slot and addresses. It is that
// behind a layer's weights where it was measured there, else over and over with
// tables in the L2.
func fitLookup(s *Samples, p *hw.Profile, from source) []model {
	p.Host.Lookup, p.Host.LookupRate, p.Host.LookupMiss, p.Host.LookupBlock = hw.Figure{}, hw.Figure{}, hw.Figure{}, hw.Figure{}
	hits, missing, what := lookupsBehind(s)
	if len(hits) < 2 {
		hits, missing, what = lookupsOver(s)
	}
	if len(hits) < 2 {
		return nil
	}
	listed := func(at datum) int64 { return at.At("requests") * int64(at.model.KVHeads) * liveBudget / blockTokens }
	bytes := func(at datum) float64 { return float64(4 * listed(at)) }
	most := slices.Max(hits.values("requests"))
	fit, held := hits.split(together, 2, func(at datum) bool { return at.At("requests") == 1 || at.At("requests") == most })
	c := linear(fit, one, bytes)
	p.Host.Lookup = perBlock(c[0], from, what)
	if p.Host.Lookup.Set() && c[1] > 0 {
		p.Host.LookupRate = from.figure(1/c[1]*1e-9, "GB/s", what)
	}
	models := []model{{name: "host.lookup", fit: fit, held: held,
		price: func(p *hw.Profile, at datum) float64 { return p.LookupSeconds(listed(at), 0) },
		draw:  picture{x: bytes, xLabel: "bytes of lists"}}}
	few := missing.where(func(at datum) bool { return at.At("missing_blocks") < wholeMissing })
	many := missing.where(func(at datum) bool { return at.At("missing_blocks") >= wholeMissing })
	if len(few) == 0 {
		return models
	}
	blocks := func(at datum) float64 { return float64(at.At("missing_blocks")) }
	longer := func(at datum) float64 { return at.seconds - p.LookupSeconds(listed(at), 0) }
	var times, counts []float64
	for _, at := range few {
		times, counts = append(times, longer(at)), append(counts, blocks(at))
	}
	first, of := medianOf(times).Value, medianOf(counts).Value
	fit, held = many.split(together, 2, func(at datum) bool { return at.At("requests") == 1 || at.At("requests") == most })
	each := 0.0
	if len(fit) > 0 { // calibrations of older builds have none
		each = weighted(fit, func(at datum) (rest, factor float64) { return longer(at) - first, blocks(at) - of }, 0)
		models = append(models, model{name: "host.lookup_block", fit: fit, held: held,
			price: func(p *hw.Profile, at datum) float64 { return p.LookupSeconds(listed(at), at.At("missing_blocks")) },
			draw:  picture{x: func(at datum) float64 { return float64(listed(at)) }, xLabel: "blocks listed"}})
	}
	p.Host.LookupMiss = perBlock(first-each*of, from, "the same, more where one block in 256 is missing")
	p.Host.LookupBlock = perBlock(each, from, "the same, for each of all the blocks that one or two requests list")
	return models
}

// wholeMissing is how many blocks a request of 32 KV heads lists in a layer.
const wholeMissing = 32 * liveBudget / blockTokens

// lookupsOver are lookups between two other kernels, over and over, without these,
// and those with blocks missing also without the kernel that took them from the
// tables.
func lookupsOver(s *Samples) (hits, missing data, what string) {
	pair := s.of(probePair)
	if len(pair) == 0 {
		return nil, nil, ""
	}
	tables := map[int64]float64{}
	for _, at := range s.of(probeTable) {
		tables[at.At("missing_blocks")] = at.seconds - pair[0].seconds
	}
	for _, at := range s.of(probeLookup) {
		at.seconds -= pair[0].seconds
		hits = append(hits, at)
	}
	for _, at := range s.of(probeLookupMissing) {
		if t, ok := tables[at.At("missing_blocks")]; ok {
			at.seconds -= pair[0].seconds + t
			missing = append(missing, at)
		}
	}
	return hits, missing, "the GPU's lookup of a layer's lists with the launch of the gather, between two other kernels"
}

// lookupsBehind are lookups behind the weights of a layer, without these and what
// brings the lists. A time that the linears' noise leaves nothing of is left out.
func lookupsBehind(s *Samples) (hits, missing data, what string) {
	hits = s.behind(probeBehindLookup, probeBehindLists)
	table := map[[2]int64]float64{}
	sizes := func(at datum) [2]int64 { return [2]int64{at.At("requests"), at.At("missing_blocks")} }
	for _, at := range s.behind(probeBehindTable, probeBehindLists) {
		table[sizes(at)] = at.seconds
	}
	for _, at := range s.behind(probeBehindMissing, probeBehindLists) {
		if t, ok := table[sizes(at)]; ok && at.seconds > t {
			at.seconds -= t
			missing = append(missing, at)
		}
	}
	return hits, missing, "the GPU's lookup of a layer's lists with the launch of the gather, behind the layer's weights"
}

// behind is what a probe takes longer than another of as many requests.
func (s *Samples) behind(probe, without string) (d data) {
	less := map[int64]float64{}
	for _, at := range s.of(without) {
		less[at.At("requests")] = at.seconds
	}
	for _, at := range s.of(probe) {
		if t, ok := less[at.At("requests")]; ok && at.seconds > t {
			at.seconds -= t
			d = append(d, at)
		}
	}
	return d
}
