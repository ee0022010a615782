package calibrate

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/hw"
)

// layerOverhead is the time of a layer in a sequence of layers beyond its kernels, each measured
// alone. It is fitted to steps of a live server that are not split into phases. The model serves
// the same requests and prices each step without overhead:
//
//	overhead = mean over points of (t - t of the model)/layers
//
// It also absorbs the residual error of the kernel models. If only the host is measured (host), it
// also absorbs the difference between this card and the built-in one.
type layerOverhead struct{ host bool }

const (
	probeLiveHeld      = "live.unsplit_held"
	probeLiveHeldPSA   = "live.unsplit_held_psa"
	probeLiveDense     = "live.unsplit_dense"
	probeLiveLookup    = "live.unsplit_lookup"
	probeLiveLookupPSA = "live.unsplit_lookup_psa"
	probeLiveChunk     = "live.unsplit_chunk"
	probeLiveChunkHeld = "live.unsplit_chunk_held"
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
	{probeLiveChunk, "by how much steps of such a server, with attention to the whole context, that " +
		"also prefill a prompt's second chunk are longer than those that decode alone",
		hw.OverheadDense, "", drainConfig{held: true, dense: true, chunks: true}},
	{probeLiveChunkHeld, "the same with selected blocks, KV in HBM only", hw.OverheadSparse, "",
		drainConfig{held: true, chunks: true}},
}

// servers returns the servers to measure. With host, these are dense and sparse layers whose lists
// the CPU looks up.
func (c layerOverhead) servers() []overheadServer {
	return slices.DeleteFunc(slices.Clone(overheadServers), func(k overheadServer) bool {
		return c.host && (k.kind.lookup || k.kind.psa)
	})
}

func (c layerOverhead) probes() (all []Probe) {
	for _, k := range c.servers() {
		axes := []string{"layers", "requests"}
		if k.kind.psa {
			axes = append(axes, "rounds")
		}
		all = append(all, Probe{Name: k.probe, serve: draining(k.kind, func(t *drainTimes,
			p Point) []float64 {
			return k.kind.steps(t, p)
		}),
			Means: k.means, Axes: axes,
			shaped: true, fixed: drainSamples})
	}
	return all
}

func (c layerOverhead) points(p *planner) {
	for _, shape := range shapes {
		for _, k := range c.servers() {
			p.add(stageDrain, drainPoints(k.probe, shape, p.layers(), k.kind)...)
		}
	}
}

// leastOverhead stands for zero overhead.
const leastOverhead = 1e-9

// batchesHeldOut are the batch sizes that are held out of the fit.
var batchesHeldOut = []int64{3, 6, 12}

// fit adds a row for each measured kind of layer to a profile that is otherwise complete. A server
// that the model cannot simulate is noted.
func (c layerOverhead) fit(s *Samples, p *hw.Profile, from source) (models []model) {
	note := func(format string, values ...any) {
		p.Provenance.Notes = append(p.Provenance.Notes, fmt.Sprintf(format, values...))
	}
	var kept []hw.OverheadRow // of the built-in card, where not all are measured
	if c.host {
		kept = p.LayerOverhead
	}
	p.LayerOverhead = []hw.OverheadRow{ // without a cost, so that each server has its device
		{Attention: hw.OverheadSparse, Lookup: hw.OverheadGPULookup,
			Figure: from.us(leastOverhead, "none yet")},
	}
	bare, err := asRead(p)
	p.LayerOverhead = kept
	if err != nil {
		note("layer_overhead is left out: %v", err)
		return nil
	}
	for _, k := range c.servers() {
		all := s.of(k.probe)
		if len(all) == 0 {
			if c.host {
				note("%s is as it is built in: the samples have none of it", k.name())
			}
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
		k.put(p, from.figure(max(stat.Mean(over, nil), leastOverhead)*1e6, "us", k.what()))
		models = append(models, model{name: k.name(), fit: fit, held: held,
			draw: picture{x: requests, xLabel: "requests"},
			price: func(p *hw.Profile, at observation) float64 {
				return priced[at.Key()] + float64(at.At("layers"))*k.of(p)
			}})
	}
	return models
}

// put sets the figure of the server's row.
func (k *overheadServer) put(p *hw.Profile, f hw.Figure) {
	row := hw.OverheadRow{Attention: k.attention, Lookup: k.lookup, Chunk: k.kind.chunks, Figure: f}
	i := slices.IndexFunc(p.LayerOverhead, k.is)
	if i < 0 {
		p.LayerOverhead = append(p.LayerOverhead, row)
		return
	}
	p.LayerOverhead = slices.Clone(p.LayerOverhead)
	p.LayerOverhead[i] = row
}

// is reports whether a row belongs to the server.
func (k *overheadServer) is(r hw.OverheadRow) bool {
	return r.Attention == k.attention && r.Lookup == k.lookup && r.Chunk == k.kind.chunks
}

// of returns the row's figure in a profile, in seconds.
func (k *overheadServer) of(p *hw.Profile) float64 {
	if i := slices.IndexFunc(p.LayerOverhead, k.is); i >= 0 {
		return p.LayerOverhead[i].SI()
	}
	return 0
}

func (k *overheadServer) what() string {
	if k.kind.chunks {
		return "what a chunk adds to a layer of decodes in the live loop, over its kernels measured " +
			"one by one"
	}
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
	if k.kind.chunks {
		return "layer_overhead." + k.attention + "_chunk"
	}
	return "layer_overhead." + k.attention
}
