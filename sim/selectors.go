package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// cyclic is the library's selections of heads that decide by themselves. Each group replays one of
// the library's cycles.
type cyclic struct{ *selection }

func (s cyclic) alike() int { return 1 }

func (s cyclic) decide(r *request, candidates int) error {
	r.grid = s.Library.Grid(candidates)
	if r.steps == 1 {
		r.cursors = r.cursors[:0]
		heads := s.Geometry.KVHeads
		for _, g := range s.counted {
			r.cursors = append(r.cursors, s.Library.CursorOf(s.Seed, r.ID, int(g)/heads,
				int(g)%heads, heads))
		}
	}
	if r.grid < 0 || r.grid == r.lastGrid {
		return nil
	}
	r.cycles = r.cycles[:0]
	for _, c := range r.cursors {
		if err := s.stopped(); err != nil { // one iteration may take a second
			return err
		}
		r.cycles = append(r.cycles, s.Library.Cycle(c, r.grid))
	}
	return nil
}

func (s cyclic) pick(r *request, g int, sel *kv.Selection) {
	g = s.row(g)
	c := r.cycles[g]
	turn := int(r.cursors[g].Phase) + r.steps
	t := turn % c.Steps
	sel.Picks = c.At(t)
	sel.Follows = r.grid == r.lastGrid
	sel.Again, sel.Old = c.Again(t)
	sel.History, sel.Turn = c, turn
}

func (s cyclic) used(r *request, g int) int {
	c := r.cycles[g]
	return c.Used((int(r.cursors[g].Phase) + r.steps) % c.Steps)
}

func (s cyclic) recall(r *request) {
	h := &r.record.Recalled
	if r.grid < 0 {
		h.Token(1, 0)
		return
	}
	if r.grid != r.lastGrid || len(r.recalls) == 0 {
		r.recalls = r.recalls[:0]
		for _, c := range r.cursors {
			r.recalls = append(r.recalls, s.Library.Recall(c, r.grid))
		}
	}
	sum, missed2 := 0.0, 0.0
	for g, row := range r.recalls {
		held := dsa.Recall{Share: 1}
		if int(s.counted[g]) >= s.Spec.Selection.DenseLayers*s.Geometry.KVHeads {
			held = row[(int(r.cursors[g].Phase)+r.steps)%len(row)]
		}
		sum += float64(held.Share)
		missed2 += float64(held.Missed2)
	}
	h.Token(sum/float64(len(r.recalls)), missed2/float64(len(r.recalls)))
}

// newest is a source of selections outside the library: a device, or a recording.
type newest struct{ *selection }

func (s newest) pick(r *request, g int, sel *kv.Selection) { sel.Picks = r.latest.Picks(s.row(g)) }

func (s newest) used(r *request, g int) int { return r.latest.Picks(g).Used }

func (s newest) alike() int { return 1 }

func (s newest) recall(*request) {}

// chooses sets the grid of a request whose selection is no library's, and reports whether its
// groups leave candidates out.
func (s newest) chooses(r *request, candidates int) bool {
	if r.grid = 0; candidates <= s.policy.Limit() {
		r.grid = -1 // all blocks are selected
	}
	return r.grid == 0
}

// layered is the library's selections of heads that decide together in each layer.
type layered struct{ *selection }

func (s layered) alike() int { return s.Geometry.KVHeads }

// decide makes the heads of each layer decide and keeps the selections of the sampled groups.
func (s layered) decide(r *request, candidates int) error {
	r.grid = s.Library.Grid(candidates)
	heads, dense, groups := s.Geometry.KVHeads, s.Spec.Selection.DenseLayers, s.sample.Groups
	if r.steps == 1 {
		r.layers, r.used = r.layers[:0], r.used[:0]
		for layer := dense; layer < s.Model.Layers; layer++ {
			r.layers, r.used = append(r.layers, s.Library.Layer(s.Seed, r.ID, layer, heads)),
				append(r.used, 0)
		}
		r.latest = dsa.NewLatest(len(groups))
	}
	if r.grid < 0 {
		return nil
	}
	group := 0
	for i, layer := range r.layers {
		if err := s.stopped(); err != nil { // one iteration may take a second
			return err
		}
		used, picked := layer.Decide(r.grid, r.steps)
		r.used[i] = used
		for ; group < len(groups) && int(groups[group]) < (dense+i+1)*heads; group++ {
			if g := int(groups[group]); g >= dense*heads {
				r.latest.Take(group, layer.Order(g%heads, picked), used, s.Spec.Progressive(),
					r.grid == r.lastGrid)
			}
		}
	}
	return nil
}

func (s layered) pick(r *request, g int, sel *kv.Selection) { sel.Picks = r.latest.Picks(g) }

func (s layered) used(r *request, g int) int {
	return r.used[g/s.Geometry.KVHeads-s.Spec.Selection.DenseLayers]
}

func (s layered) recall(r *request) {
	if r.grid < 0 {
		r.record.Recalled.Token(1, 0)
		return
	}
	sum, missed2 := float64(s.Spec.Selection.DenseLayers*s.Geometry.KVHeads), 0.0
	for _, layer := range r.layers {
		for h := range s.Geometry.KVHeads {
			held := layer.Recall(h)
			sum += float64(held.Share)
			missed2 += float64(held.Missed2)
		}
	}
	groups := float64(s.Geometry.Groups())
	r.record.Recalled.Token(sum/groups, missed2/groups)
}

// onDevice is the selections of a device that selects (Device.Score).
type onDevice struct{ newest }

func (s onDevice) decide(r *request, candidates int) error {
	if !s.chooses(r, candidates) {
		return nil
	}
	if r.latest == nil {
		r.latest = dsa.NewLatest(len(s.counted))
	}
	return nil
}

// recorded is the selections of a recording.
type recorded struct{ newest }

func (s recorded) decide(r *request, candidates int) (err error) {
	if !s.chooses(r, candidates) {
		return nil
	}
	if r.replay == nil {
		if r.replay, err = s.Recording.Replay(r.ID, r.Prompt, r.Output, s.counted); err != nil {
			return fmt.Errorf("selection.recording: %w", err)
		}
		r.latest = r.replay.Latest
	}
	if err = r.replay.Step(r.Generated, candidates); err != nil {
		return fmt.Errorf("selection.recording: %w", err)
	}
	return nil
}
