package sim

import "sparseserve/sim/kv"

// prepareSelections moves a decode's selections one step on: it finds the
// streams of its context length and, when that is new, every group's place.
func (s *Server) prepareSelections(r *request) error {
	candidates := s.candidates(r)
	r.lastGrid = r.grid
	if r.steps == 0 {
		r.lastGrid = -2 // no step before
	}
	if s.chosen() {
		if err := s.prepareChoice(r, candidates); err != nil {
			return err
		}
		r.steps++
		return nil
	}
	r.grid = s.Library.Grid(candidates)
	if r.steps == 0 {
		r.cursors = r.cursors[:0]
		for _, g := range s.groups {
			r.cursors = append(r.cursors, s.Library.CursorOf(s.Seed, r.ID, int(g)))
		}
	}
	if r.grid >= 0 && r.grid != r.lastGrid {
		r.streams = r.streams[:0]
		for _, c := range r.cursors {
			r.streams = append(r.streams, s.Library.Stream(int(c.Family), r.grid))
		}
	}
	r.steps++
	return nil
}

// candidates is the blocks of a decode between sinks and window.
func (s *Server) candidates(r *request) int {
	return max(0, s.Geometry.Blocks(r.Context())-s.Spec.SinkBlocks-s.Spec.WindowBlocks)
}

// selection returns what group g of the sample selects in r's current step.
func (s *Server) selection(r *request, g int, dense bool, sel *kv.Selection) {
	sel.Prev, sel.Diff = nil, nil
	if sel.All = dense || r.grid < 0; sel.All {
		return
	}
	sel.Sinks = s.Spec.SinkBlocks
	sel.Tail = s.Geometry.Blocks(r.Context()) - s.Spec.WindowBlocks
	if s.chosen() {
		sel.Next, sel.Prev, sel.Diff = r.rows.Row(g)
		return
	}
	st := r.streams[g]
	t := (int(r.cursors[g].Phase) + r.steps) % st.Steps
	sel.Next = st.At(t)
	if r.grid == r.lastGrid {
		prev := t - 1
		if prev < 0 {
			prev = st.Steps - 1
		}
		sel.Prev, sel.Diff = st.At(prev), st.Diff(t)
	}
}
