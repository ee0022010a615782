package hw

import (
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
	graphs               Graphs

	host, launched des.Time // of this step
}

func newEngineTime(e *EngineCosts, graphs Graphs) engineTime {
	return engineTime{
		overlaps: e.PlanAhead && !e.SerialHost,
		step:     nanoseconds(e.Host.Step.SI()), request: nanoseconds(e.Host.Request.optional()),
		token:  nanoseconds(e.Host.Token.optional()),
		sparse: nanoseconds(e.Host.SparseLayer.optional()),
		eager:  nanoseconds(e.Host.EagerLayer.optional()),
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
	} else if _, graph := e.graphs.holds(w); !graph {
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
