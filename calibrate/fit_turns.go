package calibrate

import (
	"cmp"
	"slices"

	"sparseserve/hw"
)

// How long the GPU waits for the CPU in a layer shows in the steps of two servers that do the same but for that: one offloads, the other's KV stays in
// HBM. Neither step is split into phases, as an event between the selection and its copy, and one before the first kernel behind it, are waited for
// too: 5 us a layer on an H200.

// turnData is what a layer's round trip takes by these servers:
//
//	t = (offloading - held)/layers + list_copy - kv_write
//
// where in HBM alone lists come up between two kernels, those of PSA with the slots of their blocks, and with offloading a kernel of its own writes
// K and V.
func turnData(s *Samples, p *hw.Profile, unsplit, held string) (turns data) {
	without := map[string]float64{}
	for _, at := range s.of(held) {
		without[turnKey(at)] = at.seconds
	}
	for _, at := range s.of(unsplit) {
		t, ok := without[turnKey(at)]
		if !ok {
			continue
		}
		at.seconds = (at.seconds-t)/float64(at.At("layers")) + p.ListCopySeconds(heldBytes(at)) - p.Host.KVWrite.SI()
		if at.seconds > callBound.low {
			turns = append(turns, at)
		}
	}
	return turns
}

func turnKey(at datum) string { return at.Shape + " " + otherAxes(at, "") }

// turnBytes are those of the lists of a layer, of PSA as long as its longest.
func turnBytes(at datum) float64 {
	blocks := int64(liveBudget / blockTokens)
	if at.has("rounds") {
		blocks = at.At("rounds") * psaMicro
	}
	return float64(4 * at.At("requests") * int64(at.model.KVHeads) * blocks)
}

// heldBytes are what goes up for them where KV is in HBM alone.
func heldBytes(at datum) float64 {
	if at.has("rounds") {
		return 2 * turnBytes(at)
	}
	return turnBytes(at)
}

// neverLess takes the turns of each shape to cost no less for more requests: what a
// batch is found to take depends on how the CPU fared in the second that it was served.
func neverLess(turns data) (out data) {
	for _, shape := range turns.shapes() {
		of := slices.SortedFunc(slices.Values(turns.where(func(at datum) bool { return at.Shape == shape })), func(a, b datum) int {
			return cmp.Compare(a.At("requests"), b.At("requests"))
		})
		var seconds []float64
		for _, at := range of {
			seconds = append(seconds, at.seconds)
		}
		for i, t := range rising(seconds, slices.Repeat([]float64{1}, len(of))) {
			of[i].seconds = t
		}
		out = append(out, of...)
	}
	return out
}

// turnRows are a profile's rows of turns.
func turnRows(turns data, from source, what string) (rows []hw.TurnRow) {
	for _, at := range neverLess(turns) {
		rows = append(rows, hw.TurnRow{
			KVHeads: at.model.KVHeads, Requests: int(at.At("requests")), ListsKiB: turnBytes(at) / kib, Figure: from.figure(at.seconds*1e6, "us", what),
		})
	}
	slices.SortFunc(rows, func(a, b hw.TurnRow) int {
		return cmp.Or(cmp.Compare(a.KVHeads, b.KVHeads), cmp.Compare(a.Requests, b.Requests))
	})
	return rows
}

// turnsHeldOut are batches between those of the rows, which say how well these are interpolated.
var turnsHeldOut = []int64{6, 12}

// fitTurns fits a layer's round trip, batch by batch, and over all models
//
//	t = sync + requests request + bytes/rate
//
// for what lies beyond. Where it was not measured there is none.
func fitTurns(s *Samples, p *hw.Profile, from source) (models []model) {
	h := &p.Host
	h.Turns, h.PSATurns = nil, nil
	const what = "a layer of the live loop, from the selection's way down to the first load: an unsplit step over the same with KV in HBM alone"
	for _, k := range []struct {
		name, unsplit, held, what string
		rows                      *[]hw.TurnRow
		sync, request, rate       *hw.Figure
	}{
		{"host.turns", probeLiveUnsplit, probeLiveHeld, what, &h.Turns, &h.LayerSync, &h.LayerRequest, &h.LayerRate},
		{"host.psa_turns", probeLiveUnsplitPSA, probeLiveHeldPSA, what + ", with PSA", &h.PSATurns, &h.PSALayer, &h.PSARequest, &h.PSARate},
	} {
		turns := turnData(s, p, k.unsplit, k.held)
		if len(turns.shapes()) < 2 || len(turns) < 4 {
			continue
		}
		requests := func(at datum) float64 { return float64(at.At("requests")) }
		between := func(at datum) bool { return slices.Contains(turnsHeldOut, at.At("requests")) }
		fit := turns.where(func(at datum) bool { return !between(at) })
		c := linear(fit, one, requests, turnBytes)
		*k.rows = turnRows(fit, from, k.what)
		*k.sync = from.figure(max(c[0], callBound.low)*1e6, "us", k.what+", of all models")
		*k.request, *k.rate = perBlock(c[1], from, k.what+", by requests"), hw.Figure{}
		if c[2] > 0 {
			*k.rate = from.figure(1/c[2]*1e-9, "GB/s", k.what+", by the bytes of its lists")
		}
		models = append(models, model{name: k.name, fit: fit, held: turns.where(between), draw: picture{x: requests, xLabel: "requests"},
			price: func(p *hw.Profile, at datum) float64 {
				return p.TurnSeconds(at.has("rounds"), at.model.KVHeads, int(at.At("requests")), turnBytes(at))
			}})
	}
	return models
}
