package sim

import (
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// alike returns the number of layers, from this one on, that have the same work and move no KV. It
// is 1 where layers may differ: with sparse decodes, patterned prefill or layer-segmented prefill.
func (s *Server) alike(layer int) int {
	if s.cache != nil || s.Spec.Sparse() || s.step.meta.Prefix.ByLayer || !s.path.repeats() {
		return 1
	}
	for i := range s.batch.Prefills {
		if seg := &s.batch.Prefills[i]; s.Prefill != nil || seg.LayerFrom > 0 ||
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
	*w = Work{Prefill: w.Prefill[:0], Rounds: w.Rounds[:0], Decodes: len(s.batch.Decodes),
		Drafts: s.Spec.Speculation.Tokens}
	w.Tokens = w.Decodes * (1 + w.Drafts)
	st.moves = kv.Moves{Layer: layer, BlockBytes: s.Geometry.BlockBytes}
	for i := range s.batch.Prefills {
		if seg := &s.batch.Prefills[i]; seg.In(layer) {
			w.Tokens += seg.Tokens()
			w.Prefill = append(w.Prefill, s.span(seg, layer))
		}
	}
	if w.Tokens == 0 {
		return nil // a layer that this step skips
	}
	if len(w.Prefill) > 0 {
		w.Patterns = s.Prefill.Layer(layer)
	}
	if s.Spec.Sparse() && s.Spec.Selection.Policy != dsa.IndexerName { // linears make indexer keys
		runs, blocks := s.digestsIn(layer)
		w.Digests, w.DigestTokens = runs, int64(blocks)*int64(s.Geometry.BlockTokens)
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
	if s.hot != nil {
		w.Swapped = s.hot.swapped
	}
	of := s.scoredOfPrefixes(layer)
	if w.Sparse && of > 0 {
		w.ScoredBlocks += of
	}
	if s.cache != nil && s.cache.Sample.Rate == 1 {
		st.resumed = s.cache.Stats().Resumed
		s.writePrefills(s.cache.Layers()[layer])
	}
	if w.Sparse && (w.Decodes > 0 || of > 0) {
		if err := s.path.score(layer, w); err != nil {
			return err
		}
		if s.RecordTo != nil {
			s.sel.record(st.decodes, layer)
		}
	}
	switch {
	case s.cache != nil:
		if err := s.move(layer); err != nil {
			return err
		}
	case s.hot != nil:
		if err := s.moveHot(layer); err != nil {
			return err
		}
	}
	if n > 1 {
		return s.path.repeat(layer, n, w)
	}
	return s.path.compute(layer, dense, w)
}

// move finds the blocks that a layer loads and saves and makes the device move them.
func (s *Server) move(layer int) error {
	st := &s.step
	var err error
	if s.cache.Sample.Rate == 1 {
		err = s.loadLayer(layer)
	} else {
		err = s.loadShare()
	}
	if err != nil {
		return err
	}
	st.moves.SavesInFlight = st.savesInFlight && st.moves.Loads > 0
	s.loadInRounds(layer)
	st.moves.InRounds = len(st.work.Rounds) > 0
	st.moves.Saves = s.savesOf(layer)
	st.rec.Saved += st.moves.Saves
	overlapped := s.prefixLoads(layer)
	st.moves.Prefix += overlapped
	st.rec.Loaded += overlapped
	return s.path.move(&st.moves)
}

// loadLayer runs the cache accesses of a layer when the step reaches it. Every head is simulated.
func (s *Server) loadLayer(layer int) (err error) {
	m, before := &s.step.moves, s.cache.Stats()
	m.Loads, err = s.access(s.cache.Layers()[layer])
	after := s.cache.Stats()
	m.Evictions, m.Joined = after.Evicted-before.Evicted, after.Joined-before.Joined
	if s.adopts() {
		m.Prefix = after.Resumed - s.step.resumed
		m.Loads -= m.Prefix
	}
	return err
}

// loadShare runs the cache accesses of all sampled layers at the first layer of the step. It scales
// their loads to the whole model and spreads them evenly over the layers of the step.
func (s *Server) loadShare() error {
	st := &s.step
	if st.ran == 0 {
		var sum, joined int64
		evicted := s.cache.Stats().Evicted
		st.byRound = st.byRound[:0]
		for _, l := range s.cache.Layers() {
			s.writePrefills(l)
			had := s.cache.Stats().Joined
			n, err := s.access(l)
			if err != nil {
				return err
			}
			sum, joined = sum+n, joined+s.cache.Stats().Joined-had
			st.byRound = addRounds(st.byRound, s.cache.Rounds())
		}
		after := s.cache.Stats()
		st.loaded, st.begun = share{all: s.cache.Scale(sum)}, share{}
		st.evictions = share{all: s.cache.Scale(after.Evicted - evicted)}
		st.joined = share{all: s.cache.Scale(joined)}
		if s.adopts() {
			st.begun.all = s.cache.Scale(after.Resumed - st.before.Resumed)
			st.loaded.all -= st.begun.all
		}
	}
	st.ran++
	m := &st.moves
	m.Loads, m.Prefix = st.loaded.next(st.ran, st.runs), st.begun.next(st.ran, st.runs)
	m.Evictions = st.evictions.next(st.ran, st.runs)
	m.Joined = st.joined.next(st.ran, st.runs)
	return nil
}

// share is a step's total for the whole model, spread evenly over its layers, with the amount
// already assigned.
type share struct{ all, given int64 }

// next returns the part of the layer with number ran (from 1) of runs layers.
func (p *share) next(ran, runs int) int64 {
	upTo := p.all * int64(ran) / int64(runs)
	n := upTo - p.given
	p.given = upTo
	return n
}

// writePrefills makes the prefills of one sampled layer write their blocks. It does not depend on
// the selections of the layer's decodes, so a device that computes can run it during the previous
// layer.
func (s *Server) writePrefills(l *kv.Layer) {
	for i := range s.batch.Prefills {
		if r := s.requests[s.batch.Prefills[i].Req]; r.pinned {
			s.cache.Write(l, r.seq)
		}
	}
}

// access applies the selections of one sampled layer to the cache and returns the number of blocks
// to load over its groups.
func (s *Server) access(l *kv.Layer) (int64, error) {
	s.accessPrefixes(l)
	return s.path.access(l, s.sel.dense(l.Number))
}
