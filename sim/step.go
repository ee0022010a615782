package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// stepState is the scratch of one step, kept between steps.
type stepState struct {
	meta    Step
	work    Work
	moves   kv.Moves
	decodes []*request
	seqs    []*kv.Seq
	rec     StepRecord
	before  kv.Stats
	evicted int64 // by the end of the last step

	contexts, selected, scored int64 // tokens, tokens and blocks a head, summed over decodes
	bounded                    int64 // of contexts, at most Model.BoundTokens of each
	closing                    int   // decodes whose open block becomes full
	savesInFlight              bool  // of a prefill that a decode of the batch has ended
	freed                      int64 // blocks since the step before, whole model
	// sampled loads of the step, whole model; part given to layers so far
	loaded, shared int64
	begun, given   int64   // the same of prefixes that chunked prefills begin with
	pages, kvBytes int64   // of a layer's part
	byRound        []int64 // of loaded, by microbatch
	loads          []int64 // of the layer, by microbatch
	// heads that end with each of its rounds, and the blocks they attend to in it
	ends, lasts []int64
	runs, ran   int // layers that the step runs, and has run
	sel         kv.Selection
}

// startStep forms a batch and carries it through the device.
func (s *Server) startStep(now des.Time) error {
	s.nextBatch()
	if s.batch.Empty() {
		return nil
	}
	if err := s.prepareStep(now); err != nil {
		return err
	}
	if checkLaws {
		if err := s.checkBatch(); err != nil {
			panic(fmt.Sprintf("sim: at %v, step %d: %v", now, s.steps, err))
		}
	}
	if s.Spec.PrefixWrite == WriteBack {
		st := &s.step.meta
		st.AwaitSaves = s.savePrefixes(now)
	}
	timing, err := s.price(now)
	if err != nil {
		return err
	}
	s.finishStep(now, timing)
	if now, err = s.leap(now); err != nil {
		return err
	}
	s.schedule(now+s.step.rec.Timing.Elapsed, stepDone, 0)
	return nil
}

// price carries the step that begins now through the device.
func (s *Server) price(now des.Time) (timing Timing, err error) {
	if err := s.path.begin(&s.step.meta); err != nil {
		return timing, err
	}
	for layer := 0; layer < s.Model.Layers; {
		alike := s.alike(layer)
		if err := s.layers(layer, alike); err != nil {
			return timing, err
		}
		layer += alike
	}
	if timing, err = s.Device.Finish(); err != nil {
		return timing, err
	}
	if timing.Elapsed < 0 || timing.Elapsed > longestStep || now > math.MaxInt64-2*longestStep {
		return timing, fmt.Errorf("step %d at %g s takes %.4g s: no card, kernels and engine with "+
			"sensible figures do", s.steps, now.Seconds(), timing.Elapsed.Seconds())
	}
	return timing, nil
}

// longestStep is far above any real step, and keeps times within des.Time.
const longestStep = 1_000_000 * des.Second

// evictRequest drops the KV of a preempted request.
func (s *Server) evictRequest(r *request) {
	r.preemptions++
	s.metrics.preemptions++
	s.path.drop(r, false)
	s.closeSeq(r)
	s.weigh(r)
}

func (s *Server) closeSeq(r *request) {
	if r.seq != nil {
		s.step.freed += int64(r.seq.Blocks()) * int64(s.Geometry.Groups())
		s.cache.Free(r.seq)
	}
	r.seq, r.pinned, r.buffers, r.steps, r.selected, r.prefilled = nil, false, 0, 0, 0, 0
	r.filled = 0
}

// prepareStep brings the batch's requests into the cache and sums up the step.
func (s *Server) prepareStep(now des.Time) error {
	st := &s.step
	st.decodes, st.seqs = st.decodes[:0], st.seqs[:0]
	st.bounded = 0
	st.contexts, st.selected, st.scored, st.loaded, st.shared, st.pages, st.kvBytes, st.closing,
		st.savesInFlight = 0, 0, 0, 0, 0, 0, 0, 0, false
	st.meta = Step{Index: s.steps, Start: now, Requests: len(s.batch.Decodes) + len(s.batch.Prefills),
		FreedBlocks: st.freed}
	st.freed = 0
	st.rec = StepRecord{Index: s.steps, Replica: s.replica, Start: now, Decodes: len(s.batch.Decodes),
		Prefills: len(s.batch.Prefills), Waiting: s.sched.Waiting()}
	s.unpinAbsent()
	if s.hot != nil {
		s.hot.loaded, s.hot.given, s.hot.selections, s.hot.swapped = 0, 0, 0, 0
		s.hot.longest = 0
	}
	for i := range s.batch.Prefills {
		if err := s.preparePrefill(&s.batch.Prefills[i], now); err != nil {
			return err
		}
	}
	for _, sr := range s.batch.Decodes {
		if err := s.prepareDecode(s.requests[sr]); err != nil {
			return err
		}
	}
	if s.Spec.Offload {
		st.meta.DRAMBytes = s.memory.Used() * s.Geometry.BlockBytes * int64(s.Geometry.Groups())
	}
	if s.cache != nil {
		st.runs, st.ran = s.layersRun(), 0
		s.cache.BeginStep(st.seqs)
		st.before = s.cache.Stats()
	}
	return nil
}

// layersRun is how many layers the batch runs.
func (s *Server) layersRun() (n int) {
	if len(s.batch.Decodes) > 0 || !s.sched.Planner().Segmented() {
		return s.Model.Layers
	}
	for layer := range s.Model.Layers {
		in := func(seg sched.Segment) bool { return seg.In(layer) }
		if slices.ContainsFunc(s.batch.Prefills, in) {
			n++
		}
	}
	return n
}

// unpinAbsent lets the cache evict the KV of chunked prefills that are not in this batch;
// evicted blocks are loaded again when they continue.
func (s *Server) unpinAbsent() {
	kept := s.pinned[:0]
	for _, r := range s.pinned {
		if !r.pinned {
			continue // completed or preempted since
		}
		if r.Request != nil && s.batch.HasPrefill(r.Request) {
			kept = append(kept, r)
			continue
		}
		s.cache.Unpin(r.seq)
		r.pinned = false
	}
	s.pinned = kept
}

func (s *Server) preparePrefill(seg *sched.Segment, now des.Time) error {
	r := s.requests[seg.Req]
	if seg.TokenFrom == r.Hit && seg.LayerFrom == 0 {
		s.begun(r, !r.started)
	}
	if !r.started {
		r.started, r.scheduled = true, now
		s.metrics.scheduled(now - r.arrival.At)
	}
	s.step.rec.PrefillTokenLayers += int64(seg.Tokens()) * int64(seg.LayerTo-seg.LayerFrom)
	if seg.Completes(s.Model.Layers) {
		s.step.meta.Sampled++
	}
	if s.cache == nil {
		return nil
	}
	if r.seq == nil {
		s.openSeq(r)
		if s.sched.Planner().Segmented() {
			r.buffers = s.segmentBuffers(r.Target, r.Hit)
		}
		if err := s.cache.Reserve(r.seq, s.metaBytes(r.Target)+r.buffers); err != nil {
			return err
		}
	}
	if !s.sched.Planner().Segmented() {
		if err := s.cache.Reserve(r.seq, s.metaBytes(r.Target)+
			s.promptRest(r.Target, seg.TokenTo)); err != nil {
			return err
		}
		s.cache.Extend(r.seq, seg.TokenTo)
		s.cache.Pin(r.seq, s.looseBlocks(seg.Req))
		if !r.pinned {
			r.pinned = true
			s.pinned = append(s.pinned, r)
		}
	}
	if s.selectsPrefix(seg.Req) {
		return s.selectPrefix(r)
	}
	return nil
}

func (s *Server) prepareDecode(r *request) error {
	st := &s.step
	st.decodes = append(st.decodes, r)
	st.meta.Sampled++
	context := r.Context()
	st.contexts += int64(context)
	st.bounded += int64(min(context, s.Model.BoundTokens))
	if s.Spec.Sparse() {
		if s.fixed {
			st.selected += s.selectedTokens(context)
		}
		st.scored += int64(context / s.Geometry.BlockTokens)
	}
	if s.Spec.Sparse() && (s.cache != nil || s.hot != nil || !s.fixed || s.Addressed ||
		s.RecordTo != nil) {
		if err := s.prepareSelections(r); err != nil {
			return err
		}
	}
	if s.hot != nil {
		s.chooseHot(r)
	}
	closes := context%s.Geometry.BlockTokens == 0
	if closes {
		st.closing++
	}
	if s.cache == nil {
		return nil
	}
	// kept until all that its prefill saved is in DRAM
	st.savesInFlight = st.savesInFlight || r.buffers > 0
	st.seqs = append(st.seqs, r.seq)
	s.cache.Extend(r.seq, context)
	if closes {
		if err := s.cache.Reserve(r.seq, s.metaBytes(context)+r.buffers); err != nil {
			return err
		}
	}
	return nil
}

// selectedTokens is what one head reads of a context: all of it, or the budget with a partly
// filled open block.
func (s *Server) selectedTokens(context int) int64 {
	blocks := s.Geometry.Blocks(context)
	if blocks <= s.budget {
		return int64(context)
	}
	open := context - (blocks-1)*s.Geometry.BlockTokens
	return int64((s.budget-1)*s.Geometry.BlockTokens + open)
}

// alike returns how many layers, from this one on, have the same work and move nothing. Layers of
// sparse decodes may differ, and those of prefill with patterns or in segments.
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

// layers runs n layers of the step, which are alike.
func (s *Server) layers(layer, n int) error {
	st := &s.step
	w := &st.work
	*w = Work{Prefill: w.Prefill[:0], Rounds: w.Rounds[:0], Decodes: len(s.batch.Decodes),
		Tokens: len(s.batch.Decodes)}
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
	if s.Spec.Sparse() && s.Spec.Selection != dsa.IndexerName { // whose keys linears make
		runs, blocks := s.digestsIn(layer)
		w.Digests, w.DigestTokens = runs, int64(blocks)*int64(s.Geometry.BlockTokens)
	}
	dense := s.dense(layer)
	w.BoundedTokens = st.bounded
	if w.DecodeTokens = st.contexts; !dense {
		w.Sparse, w.DecodeTokens, w.ScoredBlocks = true, st.selected, st.scored
		if !s.fixed {
			s.attended(layer)
		}
	}
	if s.hot != nil {
		w.Swapped = s.hot.swapped
	}
	of := s.scoredOfPrefixes(layer)
	if w.Sparse && of > 0 {
		w.ScoredBlocks += of
	}
	if w.Sparse && (w.Decodes > 0 || of > 0) {
		if err := s.path.score(layer, w); err != nil {
			return err
		}
		if s.RecordTo != nil {
			s.record(layer)
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

// move finds the blocks that a layer loads and saves and has the device move them.
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
	beside := s.prefixLoads(layer)
	st.moves.Prefix += beside
	st.rec.Loaded += beside
	return s.path.move(&st.moves)
}

// loadLayer runs the accesses of a layer when the step reaches it: every head is simulated.
func (s *Server) loadLayer(layer int) (err error) {
	m, before := &s.step.moves, s.cache.Stats().Resumed
	m.Loads, err = s.access(s.cache.Layers()[layer])
	if s.adopts() {
		m.Prefix = s.cache.Stats().Resumed - before
		m.Loads -= m.Prefix
	}
	m.UniquePages, m.RequestKVBytes = s.cache.Spread(1)
	return err
}

// loadShare runs the accesses of all sampled layers at the first layer of the step and spreads
// their loads, scaled to the whole model, evenly over the layers that it runs.
func (s *Server) loadShare() error {
	st := &s.step
	if st.ran == 0 {
		var sum int64
		st.byRound = st.byRound[:0]
		for _, l := range s.cache.Layers() {
			n, err := s.access(l)
			if err != nil {
				return err
			}
			sum += n
			st.byRound = addRounds(st.byRound, s.cache.Rounds())
		}
		st.loaded, st.shared, st.begun, st.given = s.cache.Scale(sum), 0, 0, 0
		if s.adopts() {
			st.begun = s.cache.Scale(s.cache.Stats().Resumed - st.before.Resumed)
			st.loaded -= st.begun
		}
		st.pages, st.kvBytes = s.cache.Spread(st.runs)
	}
	st.ran++
	upTo := st.loaded * int64(st.ran) / int64(st.runs)
	st.moves.Loads = upTo - st.shared
	st.shared = upTo
	upTo = st.begun * int64(st.ran) / int64(st.runs)
	st.moves.Prefix = upTo - st.given
	st.given = upTo
	st.moves.UniquePages, st.moves.RequestKVBytes = min(st.pages, st.moves.Loads), st.kvBytes
	return nil
}

// access runs the prefill writes and selections of one sampled layer and returns the blocks to
// load over its groups.
func (s *Server) access(l *kv.Layer) (int64, error) {
	for i := range s.batch.Prefills {
		if r := s.requests[s.batch.Prefills[i].Req]; r.pinned {
			s.cache.Write(l, r.seq)
		}
	}
	s.accessPrefixes(l)
	return s.path.access(l, s.dense(l.Number))
}

// dense says whether decodes of a layer attend to every block.
func (s *Server) dense(layer int) bool { return !s.Spec.Sparse() || layer < s.Spec.DenseLayers }

// finishStep books the step's outcome.
func (s *Server) finishStep(now des.Time, timing Timing) {
	st := &s.step
	if s.cache != nil {
		s.queueSaves()
		s.completeSaves(now+max(0, timing.SavesDone), timing.SavedSteps)
		after := s.cache.Stats()
		st.rec.Selected = s.cache.Scale(after.Selected - st.before.Selected)
		st.rec.Resumed = st.rec.Loaded + s.cache.Scale(after.Resumed-st.before.Resumed)
		st.rec.Loaded += s.cache.Scale(after.Loaded - st.before.Loaded)
		st.rec.Ahead = s.cache.Scale(after.Ahead - st.before.Ahead)
		st.rec.Evicted = s.cache.Scale(after.Evicted - st.evicted)
		st.evicted = after.Evicted
	}
	if s.hot != nil {
		s.finishHot()
	}
	st.rec.Tokens, st.rec.HBMBytes, st.rec.DRAMBytes = st.meta.Sampled, s.hbmUsed(), st.meta.DRAMBytes
	st.rec.H2DBytes, st.rec.D2HBytes = st.rec.Loaded*s.Geometry.BlockBytes,
		st.rec.Saved*s.Geometry.BlockBytes
	if s.Spec.PrefixWrite != WriteBack {
		s.savePrefixes(now + timing.Elapsed)
	}
	s.notePrefixes()
	st.rec.Timing = timing
	s.busy = true
}
