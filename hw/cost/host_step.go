package cost

import (
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// engineTime is the engine's host time for a step, without layers' waits.
//
//	host    = step + requests request + prompt tokens token
//	launch  = sparse layers sparse_layer + layers without a graph eager_layer
//
// If the engine plans ahead and has no serial host, its host time overlaps with the GPU, and a step
// takes the longer of both. The first step after a pause does not overlap, because nothing was
// planned. Launches always overlap with the GPU and are a lower bound of its time.
type engineTime struct {
	overlaps             bool
	step, request, token des.Time
	sparse, eager        des.Time // per layer's launches
	graphs               hw.Graphs

	host, launched des.Time // of this step
}

func newEngineTime(e *hw.EngineCosts, graphs hw.Graphs) engineTime {
	return engineTime{
		overlaps: e.PlanAhead && !e.SerialHost,
		step:     nanoseconds(e.Host.Step.SI()), request: nanoseconds(e.Host.Request.Optional()),
		token:  nanoseconds(e.Host.Token.Optional()),
		sparse: nanoseconds(e.Host.SparseLayer.Optional()),
		eager:  nanoseconds(e.Host.EagerLayer.Optional()),
		graphs: graphs,
	}
}

// begin returns the host time that passes before the GPU can start. rest is true if the GPU was
// idle before.
func (e *engineTime) begin(s *sim.Step, rest bool) (before des.Time) {
	e.host, e.launched = e.step+des.Time(s.Requests)*e.request, 0
	if e.overlaps && !rest {
		return 0
	}
	before, e.host = e.host, 0
	return before
}

// layer counts a layer's launches.
func (e *engineTime) layer(w *sim.Work) {
	if w.Sparse {
		e.launched += e.sparse
	} else if _, graph := holds(&e.graphs, w); !graph {
		e.launched += e.eager
	}
}

// prompts returns the host's time for prompt tokens.
func (e *engineTime) prompts(tokens int) des.Time {
	t := des.Time(tokens) * e.token
	if e.overlaps {
		e.host += t
		return 0
	}
	return t
}

// graphsOf returns the engine's graphs of a model on its cards.
func graphsOf(p *hw.Profile, m *llm.Model) hw.Graphs {
	g := p.Graphs.Of(m.GPUs(), &p.GPU)
	if most := g.LatentPrefills; most > 0 && m.IsLatent() {
		g.Prefills = slices.DeleteFunc(slices.Clone(g.Prefills), func(n int) bool { return n > most })
	}
	return g
}

// holds returns whether a graph runs a batch, and the tokens that the batch's linears run over.
func holds(g *hw.Graphs, w *sim.Work) (tokens int, graph bool) {
	sizes := g.Tokens
	if g.Decodes && len(w.Prefill) > 0 {
		sizes = g.Prefills
	}
	if i, _ := slices.BinarySearch(sizes, w.Tokens); i < len(sizes) {
		return sizes[i], true
	}
	return w.Tokens, false
}

// Server returns the engine's properties that the simulated server needs.
func Server(e *hw.EngineCosts) sim.Engine {
	return sim.Engine{PlanAhead: e.PlanAhead, LoadsInTurn: e.LoadsInTurn,
		Request: nanoseconds(e.FrontEnd.Request.Optional()),
		Token:   nanoseconds(e.FrontEnd.Token.Optional()),
		Reply:   nanoseconds(e.FrontEnd.Reply.Optional())}
}

// roundTrip models the delay of a layer between selection and loading: the lists of selected blocks
// go down to the CPU, and block tables of the same size come back.
//
//	t = layer_sync + bytes/layer_rate, bytes = 4 KVHeads selected/32
//
// with selected tokens summed over requests, in blocks of 32.
type roundTrip struct {
	sync, rate float64 // seconds, bytes/s; rate 0: bytes cost nothing
}

func newRoundTrip(p *hw.Profile) roundTrip {
	return roundTrip{sync: p.Host.LayerSync.SI(), rate: p.Host.LayerRate.Optional()}
}

// of returns the seconds of one layer's round trip for the given bytes of lists.
func (r *roundTrip) of(bytes float64) float64 {
	if r.rate == 0 {
		return r.sync
	}
	return r.sync + bytes/r.rate
}

// ListBytes returns the bytes of one layer's lists when decodes select the given tokens per KV
// head: 4 for each block of 32. With offloading, the same number of bytes of slots comes back.
// Loaded blocks add 16 bytes each, which is negligible.
func ListBytes(m *llm.Model, selected float64) float64 {
	return selected * 4 * float64(m.KVHeads) / 32
}
