package calibrate

import (
	"errors"
	"slices"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// HostRun is a recorded live run.
type HostRun struct {
	Model   *llm.Model
	Options cost.DeviceOptions
	Steps   []live.RecordedStep
}

// hostBatch is what the host's time in a step depends on.
type hostBatch struct {
	requests, trips, bytes float64 // trips: layers that wait for the host's lookup
	attention              string  // of its decodes
	chunk                  bool    // prompts are prefilled, too
}

// FitHost fits the figures of the live loop's host to the steps of live runs on the card of p that
// were split into phases, and returns an engine with them:
//
//	host phase       t = step + requests request + trips layer_sync + bytes/layer_rate
//	the rest of it   t = price of the kernels + layers layer_overhead
//
// Steps that may wait for saves are left out, because such a wait belongs to the host phase, too.
// Figures that the runs do not show stay.
func FitHost(p *hw.Profile, runs []HostRun, from string) (*hw.Engine, error) {
	own := *p
	bare := &own
	bare.LayerOverhead = slices.Clone(p.LayerOverhead)
	for i := range bare.LayerOverhead {
		bare.LayerOverhead[i].Value = leastOverhead
	}
	var hosts data
	var batches []hostBatch
	over := map[hostBatch][]float64{} // by attention and chunk: seconds a layer
	for _, r := range runs {
		device, err := cost.NewDevice(bare, r.Model, r.Options)
		if err != nil {
			return nil, err
		}
		priced, err := live.Price(r.Steps, device)
		if err != nil {
			return nil, err
		}
		for i := range r.Steps {
			t := &r.Steps[i].Timing
			if t.Phases.Unsplit > 0 || t.Phases.Host <= 0 || awaitsSaves(&r.Steps[i]) {
				continue
			}
			b := r.batch(&r.Steps[i])
			batches = append(batches, b)
			hosts = append(hosts, observation{Point: Point{Axes: []Axis{{"step", int64(len(hosts))}}},
				seconds: t.Phases.Host.Seconds()})
			rest := (t.Elapsed - t.Phases.Host) - (priced[i].Elapsed - priced[i].Phases.Host)
			if kind := (hostBatch{attention: b.attention, chunk: b.chunk}); b.attention != "" {
				over[kind] = append(over[kind], rest.Seconds()/float64(len(r.Steps[i].Layers)))
			}
		}
	}
	if len(hosts) == 0 {
		return nil, errors.New("no step was split into phases: record the run with --split-every")
	}
	e, err := hw.LoadEngine(liveEngine)
	if err != nil {
		return nil, err
	}
	e.EngineCosts = p.EngineCosts
	of := func(get func(*hostBatch) float64) func(observation) float64 {
		return func(at observation) float64 { return get(&batches[at.At("step")]) }
	}
	c := linear(hosts, one, of(func(b *hostBatch) float64 { return b.requests }),
		of(func(b *hostBatch) float64 { return b.trips }),
		of(func(b *hostBatch) float64 { return b.bytes }))
	h, why := &e.Host, source{from}
	h.Step = why.us(max(c[0], callBound.low), "the host phase of a step of live runs")
	h.Request = perPart(c[1], noBlock, why, "the same, by requests")
	if slices.ContainsFunc(batches, func(b hostBatch) bool { return b.trips > 0 }) {
		h.LayerSync = why.us(max(c[2], callBound.low), "the same, by layers that wait for the lookup")
		if h.LayerRate = (hw.Figure{}); c[3] > 0 {
			h.LayerRate = why.gbps(1/c[3], "the same, by the bytes of lists")
		}
	}
	e.LayerOverhead = overheads(e.LayerOverhead, over, why)
	return e, nil
}

// awaitsSaves reports whether a layer of the step loads blocks whose saves may be in flight.
func awaitsSaves(s *live.RecordedStep) bool {
	return slices.ContainsFunc(s.Layers, func(l live.RecordedLayer) bool {
		return l.Moves.SavesInFlight
	})
}

// leastOverhead stands for zero overhead.
const leastOverhead = 1e-9

// batch returns what the host's time in a step depends on.
func (r *HostRun) batch(s *live.RecordedStep) (b hostBatch) {
	b.requests = float64(s.Step.Requests)
	for _, l := range s.Layers {
		w := &s.Works[l.Work]
		b.chunk = b.chunk || len(w.Prefill) > 0
		if w.Decodes == 0 {
			continue
		}
		b.attention = attentionOf(w)
		if l.Scored && r.Options.Offload && !r.Options.GPULookup {
			b.trips++
			b.bytes += cost.ListBytes(r.Model, float64(w.DecodeTokens))
		}
	}
	return b
}

func attentionOf(w *sim.Work) string {
	switch {
	case len(w.Rounds) > 0:
		return hw.OverheadPSA
	case w.Sparse:
		return hw.OverheadSparse
	}
	return hw.OverheadDense
}

// overheads replaces the rows of layers that were measured with the median of their seconds. A row
// of a chunk is what the chunk adds.
func overheads(rows []hw.OverheadRow, over map[hostBatch][]float64, from source) []hw.OverheadRow {
	rows = slices.Clone(rows)
	for i := range rows {
		r := &rows[i]
		of := over[hostBatch{attention: r.Attention, chunk: r.Chunk}]
		if r.Lookup != "" || len(of) == 0 {
			continue
		}
		seconds := medianOf(of).Value
		if alone := over[hostBatch{attention: r.Attention}]; r.Chunk && len(alone) > 0 {
			seconds -= medianOf(alone).Value
		}
		r.Figure = from.us(max(seconds, leastOverhead),
			"what a layer of live runs takes beyond its kernels")
	}
	return rows
}
