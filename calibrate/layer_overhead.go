package calibrate

import (
	"fmt"
	"github.com/sparseserve/sparseserve/hw"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// layerOverhead is the time of a layer among others beyond its kernels, each measured by itself. It
// shows in steps of a live server that are not split into phases. The model serves the
// same requests as the live server did, and prices each step without overhead:
//
//	overhead = mean over points of (t - t of the model)/layers
//
// It has what the laws of these kernels are wrong by, too.
type layerOverhead struct{}

const (
	probeLiveHeld      = "live.unsplit_held"
	probeLiveHeldPSA   = "live.unsplit_held_psa"
	probeLiveDense     = "live.unsplit_dense"
	probeLiveLookup    = "live.unsplit_lookup"
	probeLiveLookupPSA = "live.unsplit_lookup_psa"
)

// overheadServer is a server that shows the overhead of one kind of layer.
type overheadServer struct {
	probe, means      string
	attention, lookup string // of the profile's row
	kind              drainConfig
}

var overheadServers = []overheadServer{
	{probeLiveDense, "the same with attention to the whole context", hw.OverheadDense, "",
		drainConfig{held: true, dense: true}},
	{probeLiveHeld, "the same as " + probeLiveUnsplit +
		" with KV in HBM only, so that no layer asks the CPU", hw.OverheadSparse, "",
		drainConfig{held: true}},
	{probeLiveLookup, "decode steps of such a server whose lists the GPU looks up, none of their " +
		"blocks missing: all of the step",
		hw.OverheadSparse, hw.OverheadGPULookup, drainConfig{lookup: true}},
	{probeLiveHeldPSA, "the same as " + probeLiveHeld + " with PSA", hw.OverheadPSA, "",
		drainConfig{held: true, psa: true}},
	{probeLiveLookupPSA, "the same as " + probeLiveLookup + " with PSA", hw.OverheadPSA,
		hw.OverheadGPULookup, drainConfig{lookup: true, psa: true}},
}

func (layerOverhead) probes() (all []Probe) {
	for _, k := range overheadServers {
		axes := []string{"layers", "requests"}
		if k.kind.psa {
			axes = append(axes, "rounds")
		}
		all = append(all, Probe{Name: k.probe, serve: draining(k.kind, (*drainTimes).steadyAt),
			Means: k.means, Axes: axes,
			shaped: true, fixed: drainSamples})
	}
	return all
}

func (layerOverhead) points(p *planner) {
	for _, shape := range shapes {
		for _, k := range overheadServers {
			p.add(stageDrain, drainPoints(k.probe, shape, p.layers(), k.kind)...)
		}
	}
}

// leastOverhead stands for overheads that are fitted as none.
const leastOverhead = 1e-9

// batchesHeldOut are batches that no overhead is fitted to.
var batchesHeldOut = []int64{3, 6, 12}

// fit adds a row for each kind of layer to a profile that is complete but for them. Where none
// was measured there is none; a server that the model cannot have is noted.
func (layerOverhead) fit(s *Samples, p *hw.Profile, from source) (models []model) {
	note := func(format string, values ...any) {
		p.Provenance.Notes = append(p.Provenance.Notes, fmt.Sprintf(format, values...))
	}
	p.LayerOverhead = []hw.OverheadRow{ // without a cost, so that each server has its device
		{Attention: hw.OverheadSparse, Lookup: hw.OverheadGPULookup,
			Figure: from.us(leastOverhead, "none yet")},
	}
	bare, err := asRead(p)
	p.LayerOverhead = nil
	if err != nil {
		note("layer_overhead is left out: %v", err)
		return nil
	}
	for _, k := range overheadServers {
		all := s.of(k.probe)
		if len(all) == 0 {
			continue
		}
		priced, err := k.kind.priced(bare, all)
		if err != nil {
			note("%s is left out: %v", k.name(), err)
			continue
		}
		all = all.where(func(at observation) bool { return priced[at.Key()] > 0 })
		heldOut := func(at observation) bool { return slices.Contains(batchesHeldOut, at.At("requests")) }
		fit, held := all.where(func(at observation) bool { return !heldOut(at) }), all.where(heldOut)
		if len(fit) == 0 {
			continue
		}
		var over []float64
		for _, at := range fit {
			over = append(over, (at.seconds-priced[at.Key()])/float64(at.At("layers")))
		}
		p.LayerOverhead = append(p.LayerOverhead, hw.OverheadRow{Attention: k.attention, Lookup: k.lookup,
			Figure: from.figure(max(stat.Mean(over, nil), leastOverhead)*1e6, "us", k.what())})
		models = append(models, model{name: k.name(), fit: fit, held: held,
			draw: picture{x: requests, xLabel: "requests"},
			price: func(p *hw.Profile, at observation) float64 {
				return priced[at.Key()] + float64(at.At("layers"))*p.LayerOverheadSeconds(k.attention, k.lookup)
			}})
	}
	return models
}

func (k *overheadServer) what() string {
	if k.lookup != "" {
		return "a layer of decodes in the live loop whose lists the GPU looks up, over its kernels " +
			"measured one by one"
	}
	return "a layer of decodes in the live loop, over its kernels measured one by one"
}

func (k *overheadServer) name() string {
	if k.lookup != "" {
		return "layer_overhead." + k.attention + "_" + k.lookup
	}
	return "layer_overhead." + k.attention
}
