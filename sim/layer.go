package sim

import "github.com/sparseserve/sparseserve/sim/kv"

// uniform reports whether all layers have the same work and move no KV while they compute.
func (c *Config) uniform() bool { return !c.Spec.Sparse() && !c.Spec.Offload.On }

// alike returns the number of layers, from this one on, that have the same work and move no KV. It
// is 1 where layers may differ: with sparse decodes, patterned prefill or layer-segmented prefill.
func (s *Server) alike(layer int) int {
	if !s.uniform() || s.step.meta.Prefix.ByLayer || s.repeater == nil {
		return 1
	}
	for i := range s.step.batch.Prefills {
		if seg := &s.step.batch.Prefills[i]; s.Prefill != nil || seg.LayerFrom > 0 ||
			seg.LayerTo < s.Model.Layers {
			return 1
		}
	}
	return s.Model.Layers - layer
}

// layers runs n identical layers of the step.
func (s *Server) layers(layer, n int) error {
	st := &s.step
	w := &st.work
	*w = Work{Prefill: w.Prefill[:0], Rounds: w.Rounds[:0], Decodes: len(s.step.batch.Decodes),
		Drafts: s.Spec.Speculation.Tokens}
	w.Tokens = w.Decodes * (1 + w.Drafts)
	st.moves = kv.Moves{Layer: layer, BlockBytes: s.Geometry.BlockBytes}
	for i := range s.step.batch.Prefills {
		if seg := &s.step.batch.Prefills[i]; seg.In(layer) {
			w.Tokens += seg.Tokens()
			w.Prefill = append(w.Prefill, s.sel.span(st.prefills[i], seg, layer))
		}
	}
	if w.Tokens == 0 {
		return nil // a layer that this step skips
	}
	if len(w.Prefill) > 0 {
		w.Patterns = s.Prefill.Layer(layer)
	}
	dense := s.sel.dense(layer)
	w.BoundedTokens = st.bounded
	if w.DecodeTokens, w.RereadTokens = st.contexts, st.reread; !dense {
		w.Sparse, w.DecodeTokens, w.ScoredBlocks = true, st.selected, st.scored
		w.RereadTokens = 0
		if !s.sel.fixed {
			s.sel.attended(st, layer)
		}
	}
	of := s.sel.scoredOfPrefixes(st.batch, layer)
	if w.Sparse && of > 0 {
		w.ScoredBlocks += of
	}
	s.memory.open(layer)
	if w.Sparse && (w.Decodes > 0 || of > 0) {
		if err := s.Device.Score(layer, w); err != nil {
			return err
		}
		if s.RecordTo != nil {
			s.sel.record(st.decodes, layer)
		}
	}
	if err := s.memory.move(layer); err != nil {
		return err
	}
	if n > 1 {
		return s.repeater.Repeat(layer, n, w)
	}
	return s.Device.Compute(layer, w)
}
