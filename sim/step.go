package sim

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// stepState is the scratch state of one step, reused between steps.
type stepState struct {
	batch    *sched.Batch
	decodes  []*request
	prefills []*request // of batch.Prefills
	meta     Step
	work     Work
	moves    kv.Moves
	rec      metrics.Step
	totals
	drafts Work         // work of a draft pass
	seqs   []*kv.Seq    // of requests that access the cache
	sel    kv.Selection // scratch
}

// totals are sums over a step's batch.
type totals struct {
	reads
	reread  int64 // part of contexts that another decode has already read
	closing int   // blocks that decodes fill
	emits   int   // tokens that the step emits
}

// reads sums up what decodes read in a layer.
type reads struct {
	contexts, selected, scored int64 // tokens, tokens and blocks per head
	bounded                    int64 // contexts, each bounded by Model.BoundTokens
}

// add adds a decode.
func (n *reads) add(s *selection, context int) {
	n.contexts += int64(context)
	n.bounded += int64(min(context, s.Model.BoundTokens))
	if s.Spec.Sparse() {
		if s.fixed {
			n.selected += s.tokens(context)
		}
		n.scored += int64(context / s.Geometry.BlockTokens)
	}
}

// closedIn returns the number of blocks per KV head that a layer's computation fills.
func (st *stepState) closedIn(layer, blockTokens int) int {
	blocks := st.closing
	for i := range st.batch.Prefills {
		if seg := &st.batch.Prefills[i]; seg.In(layer) {
			blocks += seg.TokenTo/blockTokens - seg.TokenFrom/blockTokens
		}
	}
	return blocks
}

// startStep forms a batch and runs it on the device.
func (s *Server) startStep(now des.Time) error {
	s.nextBatch()
	if s.step.batch.Empty() {
		return nil
	}
	if err := s.prepareStep(now); err != nil {
		return err
	}
	if checkLaws {
		if err := s.memory.checkBatch(); err != nil {
			panic(fmt.Sprintf("sim: at %v, step %d: %v", now, s.steps, err))
		}
	}
	if s.Spec.PrefixCache.Write == WriteBack {
		st := &s.step.meta
		st.AwaitSaves = s.prefixes.save(now)
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
	if err := s.Device.Begin(&s.step.meta); err != nil {
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
	return s.step.finish(s.Device, now)
}

// finish makes the device finish the step.
func (st *stepState) finish(d Device, now des.Time) (err error) {
	if st.rec.Timing, err = d.Finish(); err != nil {
		return err
	}
	return st.checkTime(now)
}

// checkTime returns an error if a step is too long for the clock.
func (st *stepState) checkTime(now des.Time) error {
	timing := &st.rec.Timing
	if timing.Elapsed < 0 || timing.Elapsed > longestStep || now > math.MaxInt64-2*longestStep {
		return fmt.Errorf("step %d at %g s takes %.4g s: no card, kernels and engine with "+
			"sensible figures do", st.meta.Index, now.Seconds(), timing.Elapsed.Seconds())
	}
	return nil
}

// longestStep is far above any real step time and keeps times within des.Time.
const longestStep = 1_000_000 * des.Second

// finishStep records the step's outcome.
func (s *Server) finishStep(now des.Time) {
	st := &s.step
	timing := &st.rec.Timing
	s.memory.end(now)
	st.rec.Tokens, st.rec.HBMBytes, st.rec.DRAMBytes = st.emits, s.memory.hbmUsed(), st.meta.DRAMBytes
	st.rec.BatchFull, st.rec.KVFull = s.nearLimits(s.memory.Used())
	st.rec.H2DBytes, st.rec.D2HBytes = st.rec.Loaded*s.Geometry.BlockBytes,
		st.rec.Saved*s.Geometry.BlockBytes
	if s.Spec.PrefixCache.Write != WriteBack {
		s.prefixes.save(now + timing.Elapsed)
	}
	s.busy = true
}

// nearLimits reports whether a server with the given number of used blocks is near its batch limit
// and near its KV limit.
func (s *Server) nearLimits(used int64) (batch, room bool) {
	const near = 0.95
	free := s.memory.Tokens(s.memory.Total() - used)
	return float64(s.sched.Running()) >= near*float64(s.Spec.MaxRequests),
		float64(used) >= near*float64(s.memory.Total()) || int64(s.sched.NextPrompt()) > free ||
			s.sched.Held()
}
