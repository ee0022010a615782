package calibrate

import (
	"cmp"
	"fmt"
	"slices"

	"sparseserve/hw"
)

// What a layer takes in its row shows in steps of a live server that are not split
// into phases, over what its kernels take, each measured alone. The model serves the
// same requests as the live server did, and prices each step without gaps: what is
// left is theirs.
//
//	gap = (t - t of the model)/layers
//
// It has what the laws of these kernels are off by at these batches, too.

// gapServers are the servers that gaps are seen in, by their points' probes: those of
// chunks where prompts follow one another and where the card rests between them.
var gapServers = []gapServer{
	{[]string{probeLiveChunk, probeLivePrompt}, hw.GapPrefill, ""},
	{[]string{probeLiveDense}, hw.GapDense, ""},
	{[]string{probeLiveHeld}, hw.GapSparse, ""},
	{[]string{probeLiveLookup}, hw.GapSparse, hw.GapOfGPU},
	{[]string{probeLiveHeldPSA}, hw.GapPSA, ""},
	{[]string{probeLiveLookupPSA}, hw.GapPSA, hw.GapOfGPU},
}

type gapServer struct {
	probes            []string
	attention, lookup string
}

// leastGap stands for gaps that come out as none.
const leastGap = 1e-9

// fitGaps adds gaps to a profile that is complete but for them, batch by batch; those
// of chunks are the median over what is before them. Batches between those of the rows
// say how well these are interpolated. Where none was measured there are none. What
// could not be had is said.
func fitGaps(s *Samples, p *hw.Profile, from source) (models []model, said []string) {
	p.Gaps = nil
	bare := *p
	var rows []hw.GapRow
	for _, k := range gapServers {
		all := s.of(k.probes...)
		if len(all) == 0 || k.lookup != "" && !p.Host.Lookup.Set() {
			continue // nor has the model such a server
		}
		priced, err := servedBy(&bare, all)
		if err != nil {
			said = append(said, fmt.Sprintf("%s are left out: %v", k.name(), err))
			continue
		}
		fit := all.where(func(at datum) bool { return !k.between(at) })
		batches := map[[2]int]data{} // by KV heads and requests
		for _, at := range fit {
			if _, ok := priced[at.Key()]; ok {
				batch := [2]int{at.model.KVHeads, requestsOf(at)}
				batches[batch] = append(batches[batch], at)
			}
		}
		var own []hw.GapRow
		for batch, points := range batches {
			gap := shareOf(points.over(priced), func(at datum) float64 { return float64(at.At("layers")) })
			own = append(own, hw.GapRow{Attention: k.attention, Lookup: k.lookup, KVHeads: batch[0], Requests: batch[1], Figure: from.figure(max(gap, leastGap)*1e6, "us", k.what())})
		}
		sortGaps(own)
		if k.lookup != "" {
			own, priced = notHidden(&bare, own, fit, all, priced)
		}
		rows = append(rows, own...)
		models = append(models, model{name: k.name(), fit: fit, held: all.where(k.between), draw: k.picture(),
			price: func(p *hw.Profile, at datum) float64 {
				if k.lookup != "" { // some of them hidden
					return priced[at.Key()]
				}
				return priced[at.Key()] + float64(at.At("layers"))*p.GapSeconds(k.attention, k.lookup, at.model.KVHeads, requestsOf(at))
			}})
	}
	sortGaps(rows)
	p.Gaps = rows
	return models, said
}

// notHidden keeps the rows that explain what they are from. Where the CPU is late, the
// GPU waits for it whatever its own kernels take, and what is left says how far off
// the CPU's price is, not the gap's; the rows without the GPU's lookup stand for it.
// All points are priced with what is kept.
func notHidden(bare *hw.Profile, rows []hw.GapRow, points, all data, priced map[string]float64) ([]hw.GapRow, map[string]float64) {
	with := *bare
	with.Gaps = rows
	longer, err := servedBy(&with, all)
	must(err) // it has served them
	with.Gaps = slices.DeleteFunc(slices.Clone(rows), func(r hw.GapRow) bool {
		return slices.ContainsFunc(points, func(at datum) bool {
			moved := longer[at.Key()] - priced[at.Key()]
			return at.model.KVHeads == r.KVHeads && requestsOf(at) == r.Requests && moved < 0.5*r.SI()*float64(at.At("layers"))
		})
	})
	if len(with.Gaps) < len(rows) {
		longer, err = servedBy(&with, all)
		must(err)
	}
	return with.Gaps, longer
}

func sortGaps(rows []hw.GapRow) {
	slices.SortFunc(rows, func(a, b hw.GapRow) int {
		return cmp.Or(cmp.Compare(a.Attention, b.Attention), cmp.Compare(a.Lookup, b.Lookup), cmp.Compare(a.KVHeads, b.KVHeads), cmp.Compare(a.Requests, b.Requests))
	})
}

// over is what the points take beyond what is priced.
func (d data) over(priced map[string]float64) (rest data) {
	for _, at := range d {
		at.seconds -= priced[at.Key()]
		rest = append(rest, at)
	}
	return rest
}

func (k *gapServer) chunk() bool { return k.attention == hw.GapPrefill }

// between says whether a point is held out.
func (k *gapServer) between(at datum) bool {
	if k.chunk() {
		return at.At("prefix_tokens") == liveChunk
	}
	return slices.Contains(turnsHeldOut, at.At("requests"))
}

func (k *gapServer) what() string {
	if k.chunk() {
		return "a layer with a chunk in the live loop, over its kernels measured one by one"
	}
	return "a layer of decodes in the live loop, over its kernels measured one by one"
}

func (k *gapServer) picture() picture {
	if k.chunk() {
		return picture{x: func(at datum) float64 { return 1 + float64(at.At("prefix_tokens")) }, xLabel: "tokens before the chunk"}
	}
	return picture{x: func(at datum) float64 { return float64(requestsOf(at)) }, xLabel: "requests"}
}

func (k *gapServer) name() string {
	if k.lookup != "" {
		return "gaps." + k.attention + "_" + k.lookup
	}
	return "gaps." + k.attention
}

// requestsOf is a point's batch, of a chunk 1.
func requestsOf(at datum) int {
	if at.has("requests") {
		return int(at.At("requests"))
	}
	return 1
}
