package hw

import (
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// engineTime is the engine's time for a step, except layers' own waits.
//
//	host    = step + requests request + prompt tokens token
//	launch  = sparse layers sparse_layer + layers without a graph eager_layer
//
// An engine that plans ahead has its host's time overlap with the GPU's: a step then lasts
// the longer of both, but for the first one after a pause, which finds nothing planned.
// Launches overlap with the GPU in either: they are a floor of its time.
type engineTime struct {
	planAhead            bool
	step, request, token des.Time
	sparse, eager        des.Time // of one layer's launches
	graphs               Graphs

	host, launched des.Time // of this step
}

func newEngineTime(e *EngineCosts) engineTime {
	return engineTime{
		planAhead: e.PlanAhead,
		step:      nanoseconds(e.Host.Step.SI()), request: nanoseconds(e.Host.Request.optional()),
		token:  nanoseconds(e.Host.Token.optional()),
		sparse: nanoseconds(e.Host.SparseLayer.optional()),
		eager:  nanoseconds(e.Host.EagerLayer.optional()),
		graphs: e.Graphs,
	}
}

// begin returns what of the host's time passes before the GPU has anything to do; rest
// is whether nothing ran right before.
func (e *engineTime) begin(s *sim.Step, rest bool) (before des.Time) {
	e.host, e.launched = e.step+des.Time(s.Requests)*e.request, 0
	if e.planAhead && !rest {
		return 0
	}
	before, e.host = e.host, 0
	return before
}

// layer counts the launches of a layer.
func (e *engineTime) layer(w *sim.Work) {
	switch {
	case w.Sparse:
		e.launched += e.sparse
	case e.graphs.largest() < w.Tokens:
		e.launched += e.eager
	}
}

// prompts adds the host's time for a step's prompt tokens.
func (e *engineTime) prompts(tokens int) des.Time {
	t := des.Time(tokens) * e.token
	if e.planAhead {
		e.host += t
		return 0
	}
	return t
}
