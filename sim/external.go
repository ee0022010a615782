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
	if err := s.Recording.Shape.Same(s.SelectionShape()); err != nil {
		return fmt.Errorf("selection.recording: %w", err)
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
