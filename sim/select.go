package sim

import (
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// dsa.RecentSteps and kv.Lookback must be equal, because Cycle.Again counts reuse distances up to
// this many steps.
var _ [kv.Lookback]struct{} = [dsa.RecentSteps]struct{}{}

// prepareSelections advances a decode's selections by one step. It looks up the cycle of every
// group for the context length.
func (s *Server) prepareSelections(r *request) error {
	if err := s.decide(r, s.candidates(r)); err != nil || s.external() {
		return err
	}
	if s.RecallProxy {
		s.recall(r)
	}
	return nil
}

// decide makes the groups of a request select among the given number of candidates.
func (s *Server) decide(r *request, candidates int) error {
	r.lastGrid = r.grid
	if r.steps == 0 {
		r.lastGrid = -2 // no previous step
	}
	if s.external() {
		if err := s.prepareChoice(r, candidates); err != nil {
			return err
		}
		r.steps++
		return nil
	}
	r.grid = s.Library.Grid(candidates)
	if s.layered {
		return s.agree(r)
	}
	if r.steps == 0 {
		r.cursors = r.cursors[:0]
		heads := s.Geometry.KVHeads
		for _, g := range s.counted {
			r.cursors = append(r.cursors, s.Library.CursorOf(s.Seed, r.ID, int(g)/heads,
				int(g)%heads, heads))
		}
	}
	if r.grid >= 0 && r.grid != r.lastGrid {
		r.cycles = r.cycles[:0]
		for _, c := range r.cursors {
			if err := s.interruption(); err != nil { // one iteration may take a second
				return err
			}
			r.cycles = append(r.cycles, s.Library.Cycle(c, r.grid))
		}
	}
	r.steps++
	return nil
}

// agree makes the heads of each layer decide together and keeps the selections of the sampled
// groups.
func (s *Server) agree(r *request) error {
	heads, dense := s.Geometry.KVHeads, s.Spec.Selection.DenseLayers
	if r.steps == 0 {
		r.layers, r.used = r.layers[:0], r.used[:0]
		for layer := dense; layer < s.Model.Layers; layer++ {
			r.layers, r.used = append(r.layers, s.Library.Layer(s.Seed, r.ID, layer, heads)),
				append(r.used, 0)
		}
		r.latest = dsa.NewLatest(len(s.groups))
	}
	r.steps++
	if r.grid >= 0 {
		group := 0
		for i, layer := range r.layers {
			if err := s.interruption(); err != nil { // one iteration may take a second
				return err
			}
			used, picked := layer.Decide(r.grid, r.steps)
			r.used[i] = used
			for ; group < len(s.groups) && int(s.groups[group]) < (dense+i+1)*heads; group++ {
				if g := int(s.groups[group]); g >= dense*heads {
					r.latest.Take(group, layer.Order(g%heads, picked), used, s.Spec.Progressive(),
						r.grid == r.lastGrid)
				}
			}
		}
	}
	return nil
}

// candidates returns the number of blocks of a decode between sinks and window.
func (s *Server) candidates(r *request) int {
	return max(0,
		s.Geometry.Blocks(r.Context())-s.Spec.Selection.SinkBlocks-s.Spec.Selection.RecentBlocks)
}

// selection sets sel to the blocks that group g of the sample selects in r's current step.
func (s *Server) selection(r *request, g int, dense bool, sel *kv.Selection) {
	sel.Follows, sel.Added, sel.Came, sel.Dropped = false, nil, nil, nil
	if sel.All = dense || r.grid < 0; sel.All {
		return
	}
	sel.Sinks = s.Spec.Selection.SinkBlocks
	sel.Tail = s.Geometry.Blocks(r.Context()) - s.Spec.Selection.RecentBlocks
	s.pick(r, g, sel)
}

// pick adds the candidates of the current step to a selection.
func (s *Server) pick(r *request, g int, sel *kv.Selection) {
	if len(s.counted) > len(s.groups) && !s.layered {
		g = int(s.groups[g])
	}
	if s.layered || s.external() {
		row, follows := r.latest.Picks(g)
		sel.Follows, sel.Next, sel.Used = follows, row.Next, row.Used
		sel.Added, sel.Came, sel.Dropped = row.Added, row.Came, row.Dropped
		return
	}
	c := r.cycles[g]
	t := (int(r.cursors[g].Phase) + r.steps) % c.Steps
	sel.Follows, sel.Next, sel.Used = r.grid == r.lastGrid, c.Next(t), c.Used(t)
	sel.Added, sel.Came, sel.Dropped = c.Changes(t)
	sel.Again, sel.Old = c.Again(t)
	sel.History, sel.Turn = c, int(r.cursors[g].Phase)+r.steps
}
