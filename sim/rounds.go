package sim

// attended sums the blocks that a layer's decodes attend to if scores decide the selection size.
// Sizes are known for every head, even if the cache does not simulate its blocks.
func (s *selection) attended(st *stepState, layer int) {
	heads, size := s.Geometry.KVHeads, int64(s.Geometry.BlockTokens)
	s.ends, s.lasts = s.ends[:0], s.lasts[:0]
	var blocks, spare int64 // blocks attended to; empty token positions of open blocks
	for _, r := range st.decodes {
		all := s.Geometry.Blocks(r.Context())
		kept := min(all, s.kept())
		if layer == s.Spec.Selection.DenseLayers {
			r.selected = 0
		}
		alike := s.alike()
		for h := 0; h < heads; h += alike {
			n := kept + s.attends(r, layer*heads+h)
			blocks += int64(n) * int64(alike)
			r.selected += int64(n) * int64(alike)
			s.endsAfter(n, int64(alike))
		}
		spare += int64(all)*size - int64(r.Context())
	}
	st.work.DecodeTokens = blocks*size/int64(heads) - spare
	st.rec.Rounds += int64(len(s.ends))
	s.spreadTokens(&st.work, spare)
}

// endsAfter records that the given number of heads attend to n blocks each. It adds them to the
// round of their last block.
func (s *selection) endsAfter(blocks int, heads int64) {
	m := s.microbatch()
	if m == 0 {
		return
	}
	last := (blocks - 1) / m
	for len(s.ends) <= last {
		s.ends, s.lasts = append(s.ends, 0), append(s.lasts, 0)
	}
	s.ends[last] += heads
	s.lasts[last] += heads * int64(blocks-last*m)
}

// spreadTokens computes the layer's rounds from the heads that end in each round. Other heads
// attend to a whole microbatch, ending heads to their remaining blocks. The open block belongs to
// the first round and is partly filled. A round has at least one token, because zero would mean no
// attention.
func (s *selection) spreadTokens(w *Work, spare int64) {
	going, heads := int64(0), int64(s.Geometry.KVHeads)
	for len(w.Rounds) < len(s.ends) {
		w.Rounds = append(w.Rounds, Round{})
	}
	for i := len(s.ends) - 1; i >= 0; i-- {
		blocks := going*int64(s.Spec.Selection.Microbatch) + s.lasts[i]
		w.Rounds[i] = Round{Tokens: max(1, blocks*int64(s.Geometry.BlockTokens)/heads)}
		going += s.ends[i]
	}
	if len(w.Rounds) > 0 {
		w.Rounds[0].Tokens = max(1, w.Rounds[0].Tokens-spare)
	}
}
