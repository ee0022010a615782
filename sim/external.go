package sim

import (
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// external reports whether selections come from the device or a recording.
func (s *Server) external() bool { return s.DeviceSelects || s.Recording != nil }

// checkSelections returns an error for a source of selections that the system does not support.
func (s *Server) checkSelections(rate float64) error {
	spec := &s.Spec
	if s.DeviceSelects && (!s.Addressed || s.Recording != nil) {
		return errors.New("sim: only a device that computes can select, and not together with a " +
			"recording of selections")
	}
	if s.RecordTo != nil && rate < 1 {
		return errors.New("sim: every head must be simulated to record selections; set " +
			"simulation.heads = " +
			"\"full\"")
	}
	if spec.Offload.On && spec.Offload.Eviction == kv.ByScore && (s.external() || !spec.Sparse()) {
		return errors.New("sim: nothing scores the blocks where attention is full, and a recording or " +
			"a device that selects has no scores; use another offload.eviction than \"score\"")
	}
	if !spec.Sparse() {
		if s.external() || s.RecordTo != nil {
			return errors.New("sim: only sparse attention selects; set selection.on = true")
		}
		return nil
	}
	byKVHead := s.Addressed || s.external() || s.RecordTo != nil ||
		spec.Offload.Eviction == kv.ByScore
	if s.apart && byKVHead {
		return errors.New("sim: a device that computes, a recording and offload.eviction = \"score\" " +
			"have one selection a KV head; set selection.per = \"kv_head\"")
	}
	if s.DeviceSelects && !s.fixed {
		return fmt.Errorf("sim: a device selects a fixed number of blocks, %s does not; use one of the "+
			"top-k algorithms as selection.policy", spec.Selection.Policy)
	}
	fixed := spec.Selection.SinkBlocks + spec.Selection.RecentBlocks
	if s.external() && spec.Selection.BudgetTokens/spec.BlockTokens <= fixed {
		return errors.New("sim: the budget has no blocks to choose after sinks and window; raise " +
			"selection.budget_tokens")
	}
	if s.Recording == nil {
		return nil
	}
	was, is := s.Recording.Shape, s.SelectionShape()
	if was.Selection != is.Selection {
		return fmt.Errorf("selection.recording: selected by %s when recorded, selection.policy is %s now",
			was.Selection, is.Selection)
	}
	if was.Epsilon != is.Epsilon || was.Pipelined != is.Pipelined || was.HeadStops != is.HeadStops {
		return fmt.Errorf("selection.recording: recorded with %s, now with %s", threshold(&was),
			threshold(&is))
	}
	for _, c := range []struct {
		what    string
		was, is int
	}{
		{"layers", was.Layers, is.Layers}, {"KV heads", was.KVHeads, is.KVHeads},
		{"selection.dense_layers", was.DenseLayers, is.DenseLayers},
		{"system.block_tokens", was.BlockTokens, is.BlockTokens},
		{"selection.sink_blocks", was.SinkBlocks, is.SinkBlocks},
		{"selection.recent_blocks", was.WindowBlocks, is.WindowBlocks},
		{"selection.microbatch", was.Microbatch, is.Microbatch},
		{"blocks of selection.budget_tokens to choose", was.Candidates, is.Candidates},
	} {
		if c.was != c.is {
			return fmt.Errorf("selection.recording: %s: %d when selections were recorded, %d now", c.what,
				c.was, c.is)
		}
	}
	if was.Seed != is.Seed {
		return fmt.Errorf("selection.recording: recorded with seed %d, the seed is %d now",
			was.Seed, is.Seed)
	}
	return nil
}

// SelectionShape returns the shape of recordings that the server writes and accepts.
func (c *Config) SelectionShape() dsa.Shape {
	shape := dsa.Shape{
		Layers: c.Model.Layers, KVHeads: c.Model.KVHeads, DenseLayers: c.Spec.Selection.DenseLayers,
		BlockTokens: c.Spec.BlockTokens, SinkBlocks: c.Spec.Selection.SinkBlocks,
		WindowBlocks: c.Spec.Selection.RecentBlocks,
		Candidates:   Candidates(&c.Spec), Seed: c.Seed,
		Selection: c.Spec.Selection.Policy,
	}
	if c.Spec.Progressive() {
		shape.Candidates, shape.Epsilon, shape.Microbatch,
			shape.Pipelined = c.Spec.Selection.Microbatch,
			c.Spec.Selection.Epsilon, c.Spec.Selection.Microbatch, c.Spec.Selection.Pipelined
		shape.HeadStops = c.Spec.Selection.Stop == PSAStopHead
	}
	return shape
}

// threshold formats the stop settings of a recording.
func threshold(s *dsa.Shape) string {
	stop := PSAStopLayer
	if s.HeadStops {
		stop = PSAStopHead
	}
	return fmt.Sprintf("selection.epsilon = %g, selection.pipelined = %v, selection.stop = %q",
		s.Epsilon,
		s.Pipelined, stop)
}

// prepareChoice prepares a decode for the device's selection, or replays the step of a recording.
func (s *Server) prepareChoice(r *request, candidates int) (err error) {
	if r.grid = -1; candidates <= s.policy.Limit() {
		return nil // all blocks are selected
	}
	r.grid = 0
	if s.Recording == nil {
		if r.latest == nil {
			r.latest = dsa.NewLatest(len(s.counted))
		}
		return nil
	}
	if r.replay == nil {
		if r.replay, err = s.Recording.Replay(r.ID, r.prompt, r.Output, s.counted); err != nil {
			return fmt.Errorf("selection.recording: %w", err)
		}
		r.latest = r.replay.Latest
	}
	if err = r.replay.Step(r.Generated, candidates); err != nil {
		return fmt.Errorf("selection.recording: %w", err)
	}
	return nil
}

// record records the selections of the layer's decodes, except where all blocks are selected.
func (s *Server) record(layer int) {
	heads, sel := s.Geometry.KVHeads, &kv.Selection{}
	for _, r := range s.step.decodes {
		if r.grid < 0 {
			continue
		}
		if layer == s.Spec.Selection.DenseLayers {
			s.RecordTo.Step(r.ID, r.Generated)
		}
		for h := range heads {
			s.selection(r, layer*heads+h, false, sel)
			s.RecordTo.Add(r.ID, dsa.Picks{Next: sel.Next, Used: sel.Used, Added: sel.Added,
				Came: sel.Came, Dropped: sel.Dropped}, sel.Follows)
		}
	}
}
