package sim

import (
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// check returns an error for a source of selections that the system does not support.
func (s *selection) check() error {
	spec, rate, external := &s.Spec, s.sample.Rate, s.DeviceSelects || s.Recording != nil
	if s.DeviceSelects && (!s.Addressed || s.Recording != nil) {
		return errors.New("sim: only a device that computes can select, and not together with a " +
			"recording of selections")
	}
	if s.RecordTo != nil && rate < 1 {
		return errors.New("sim: every head must be simulated to record selections; set " +
			"simulation.heads = " +
			"\"full\"")
	}
	if spec.Offload.On && spec.Offload.Eviction == kv.ByScore && (external || !spec.Sparse()) {
		return errors.New("sim: nothing scores the blocks where attention is full, and a recording or " +
			"a device that selects has no scores; use another offload.eviction than \"score\"")
	}
	if !spec.Sparse() {
		if external || s.RecordTo != nil {
			return errors.New("sim: only sparse attention selects; set selection.on = true")
		}
		return nil
	}
	byKVHead := s.Addressed || external || s.RecordTo != nil ||
		spec.Offload.Eviction == kv.ByScore
	if s.apart && byKVHead {
		return errors.New("sim: a device that computes, a recording and offload.eviction = \"score\" " +
			"have one selection a KV head; set selection.per = \"kv_head\"")
	}
	if s.DeviceSelects && !s.fixed {
		return fmt.Errorf("sim: a device selects a fixed number of blocks, %s does not; use one of the "+
			"top-k algorithms as selection.policy", spec.Selection.Policy)
	}
	if external && spec.Selection.BudgetTokens/spec.BlockTokens <= s.kept() {
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
