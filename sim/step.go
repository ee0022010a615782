package sim

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// stepState is the scratch state of one step, reused between steps.
type stepState struct {
	meta    Step
	work    Work
	moves   kv.Moves
	decodes []*request
	seqs    []*kv.Seq
	rec     StepRecord
	before  kv.Stats
	evicted int64 // evictions up to the end of the last step

	contexts, selected, scored int64 // tokens, tokens and blocks per head, summed over decodes
	bounded                    int64 // contexts, each bounded by Model.BoundTokens
	reread                     int64 // part of contexts that another decode has already read
	closing                    int   // decodes whose open block becomes full
	savesInFlight              bool  // a decode's prefill still has saves in flight
	freed                      int64 // blocks freed since the previous step, whole model
	// blocks loaded: by selections, and for the prefixes of chunked prefills that begin
	loaded, begun share
	resumed       int64   // the cache's Resumed count before the layer's prefills write
	evictions     share   // blocks evicted in the layers
	joined        share   // blocks that share the slots of other requests
	emits         int     // tokens that the step emits
	drafts        Work    // work of a draft pass
	byRound       []int64 // loaded blocks by microbatch
	loads         []int64 // the layer's loads by microbatch
	// heads that end in each round, and the blocks that they attend to in it
	ends, lasts []int64
	runs, ran   int // layers that the step runs, and layers run so far
	sel         kv.Selection
}

// startStep forms a batch and runs it on the device.
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
	if s.Spec.PrefixCache.Write == WriteBack {
		st := &s.step.meta
		st.AwaitSaves = s.savePrefixes(now)
	}
	if err := s.price(now); err != nil {
		return err
	}
	s.finishStep(now)
	now, err := s.leap(now)
	if err != nil {
		return err
	}
	s.schedule(now+s.step.rec.Timing.Elapsed, stepDone, 0)
	return nil
}

// price runs the step that begins now on the device.
func (s *Server) price(now des.Time) error {
	if err := s.path.begin(&s.step.meta); err != nil {
		return err
	}
	for layer := 0; layer < s.Model.Layers; {
		alike := s.alike(layer)
		if err := s.layers(layer, alike); err != nil {
			return err
		}
		layer += alike
	}
	if err := s.draft(); err != nil {
		return err
	}
	return s.finishPrice(now)
}

// finishPrice makes the device finish the step.
func (s *Server) finishPrice(now des.Time) (err error) {
	if s.step.rec.Timing, err = s.Device.Finish(); err != nil {
		return err
	}
	return s.checkTime(now)
}

// checkTime returns an error if a step is too long for the clock.
func (s *Server) checkTime(now des.Time) error {
	timing := &s.step.rec.Timing
	if timing.Elapsed < 0 || timing.Elapsed > longestStep || now > math.MaxInt64-2*longestStep {
		return fmt.Errorf("step %d at %g s takes %.4g s: no card, kernels and engine with "+
			"sensible figures do", s.steps, now.Seconds(), timing.Elapsed.Seconds())
	}
	return nil
}

// longestStep is far above any real step time and keeps times within des.Time.
const longestStep = 1_000_000 * des.Second

// finishStep records the step's outcome.
func (s *Server) finishStep(now des.Time) {
	st := &s.step
	timing := &st.rec.Timing
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
	st.rec.Tokens, st.rec.HBMBytes, st.rec.DRAMBytes = st.emits, s.hbmUsed(), st.meta.DRAMBytes
	st.rec.BatchFull, st.rec.KVFull = s.nearLimits(s.memory.Used())
	st.rec.H2DBytes, st.rec.D2HBytes = st.rec.Loaded*s.Geometry.BlockBytes,
		st.rec.Saved*s.Geometry.BlockBytes
	if s.Spec.PrefixCache.Write != WriteBack {
		s.savePrefixes(now + timing.Elapsed)
	}
	s.busy = true
}
