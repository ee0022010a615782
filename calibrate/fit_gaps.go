package calibrate

import (
	"cmp"
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

// gapServers are the servers that gaps are seen in, by their points' probe.
var gapServers = []struct{ probe, attention, lookup string }{
	{probeLiveChunk, hw.GapPrefill, ""},
	{probeLiveDense, hw.GapDense, ""},
	{probeLiveHeld, hw.GapSparse, ""},
	{probeLiveLookup, hw.GapSparse, hw.GapOfGPU},
	{probeLiveHeldPSA, hw.GapPSA, ""},
	{probeLiveLookupPSA, hw.GapPSA, hw.GapOfGPU},
}

// leastGap stands for gaps that come out as none.
const leastGap = 1e-9

// fitGaps adds gaps to a profile that is complete but for them, batch by batch; those
// of chunks are the median over what is before them. Batches between those of the rows
// say how well these are interpolated. Where none was measured there are none.
func fitGaps(s *Samples, p *hw.Profile, from source) (models []model, err error) {
	p.Gaps = nil
	bare := *p
	var rows []hw.GapRow
	for _, k := range gapServers {
		all := s.of(k.probe)
		if k.lookup != "" && !p.Host.Lookup.Set() {
			continue // nor has the model such a server
		}
		priced, err := servedBy(&bare, all)
		if err != nil {
			return nil, err
		}
		chunk := k.attention == hw.GapPrefill
		between := func(at datum) bool {
			return chunk && at.At("prefix_tokens") == liveChunk || !chunk && slices.Contains(turnsHeldOut, at.At("requests"))
		}
		fit := all.where(func(at datum) bool { return !between(at) })
		gap := map[[2]int][]float64{} // by KV heads and requests
		for _, at := range fit {
			batch := [2]int{at.model.KVHeads, 1}
			if !chunk {
				batch[1] = int(at.At("requests"))
			}
			gap[batch] = append(gap[batch], (at.seconds-priced[at.Key()])/float64(at.At("layers")))
		}
		what := "a layer of decodes in the live loop, over its kernels measured one by one"
		if chunk {
			what = "a layer with a chunk in the live loop, over its kernels measured one by one"
		}
		for batch, each := range gap {
			rows = append(rows, hw.GapRow{Attention: k.attention, Lookup: k.lookup, KVHeads: batch[0], Requests: batch[1],
				Figure: from.figure(max(medianOf(each).Value, leastGap)*1e6, "us", what)})
		}
		draw := picture{x: func(at datum) float64 { return float64(requestsOf(at)) }, xLabel: "requests"}
		if chunk {
			draw = picture{x: func(at datum) float64 { return 1 + float64(at.At("prefix_tokens")) }, xLabel: "tokens before the chunk"}
		}
		if len(all) > 0 {
			models = append(models, model{name: gapName(k.attention, k.lookup), fit: fit, held: all.where(between),
				price: func(p *hw.Profile, at datum) float64 {
					return priced[at.Key()] + float64(at.At("layers"))*p.GapSeconds(k.attention, k.lookup, at.model.KVHeads, requestsOf(at))
				},
				draw: draw})
		}
	}
	slices.SortFunc(rows, func(a, b hw.GapRow) int {
		return cmp.Or(cmp.Compare(a.Attention, b.Attention), cmp.Compare(a.Lookup, b.Lookup), cmp.Compare(a.KVHeads, b.KVHeads), cmp.Compare(a.Requests, b.Requests))
	})
	p.Gaps = rows
	return models, nil
}

func gapName(attention, lookup string) string {
	if lookup != "" {
		return "gaps." + attention + "_" + lookup
	}
	return "gaps." + attention
}

// requestsOf is a point's batch, of a chunk 1.
func requestsOf(at datum) int {
	if at.has("requests") {
		return int(at.At("requests"))
	}
	return 1
}

// servedBy prices points of servers that requests leave: the model serves the same
// requests. By the point's key.
func servedBy(p *hw.Profile, all data) (map[string]float64, error) {
	priced := map[string]float64{}
	served := map[leavingKey]*leavingTimes{}
	for _, at := range all {
		key := leavingKey{at.Shape, at.leavingKind(), at.At("layers")}
		if served[key] == nil {
			c, err := at.leavingCase()
			if err != nil {
				return nil, err
			}
			if served[key], err = c.modelled(p); err != nil {
				return nil, err
			}
		}
		steps, err := served[key].samples(at.Point)
		if err != nil {
			return nil, err
		}
		priced[at.Key()] = medianOf(steps).Value
	}
	return priced, nil
}

// modelled serves on the model of a card. Lists are the same whoever looks them up,
// so that the server need not keep books of where blocks are.
func (c *leavingCase) modelled(p *hw.Profile) (*leavingTimes, error) {
	held := *c
	held.kind.held, held.kind.lookup = true, false
	cfg, err := held.config()
	if err != nil {
		return nil, err
	}
	spec := &cfg.Spec
	cfg.Device, err = hw.NewDevice(p, c.model, hw.DeviceOptions{
		LoadEngine: spec.LoadEngine, SaveEngine: spec.SaveEngine, Offload: c.kind.lookup, GPULookup: c.kind.lookup,
		SaveBufferBytes: int64(spec.SaveBuffer * mib), Microbatch: spec.Microbatch, Pipelined: spec.Pipelined,
	})
	if err != nil {
		return nil, err
	}
	return held.serve(cfg, nil)
}
