package sim

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// tiered is SparseServe's memory: DRAM holds the KV of all requests, and HBM caches blocks of it.
type tiered struct {
	sizes      // all KV is in DRAM
	path       path
	saves      []saveJob  // in flight, oldest first
	savedSteps int64      // steps whose saves are done or have a scheduled event
	pinned     []*request // requests whose chunked prefill holds HBM
	evicted    int64      // blocks evicted up to the end of the last step
	layerMoves
	byRound []int64 // blocks that the sampled layers load, by microbatch
	loads   []int64 // the layer's loads by microbatch
}

// layerMoves is what the layers of one step move.
type layerMoves struct {
	runs, ran     int   // layers that the step runs, and layers run so far
	loaded, begun int64 // blocks loaded by selections, and for prefixes of chunked prefills that begin
	joined        int64 // blocks that share the slots of other requests
	before        kv.Stats
	resumed       int64 // the cache's Resumed count before the layer's prefills write
	inFlight      bool  // a decode's prefill still has saves in flight
}

func newTiered(m resident) (*tiered, error) {
	spec := &m.Spec
	cache, err := kv.NewCache(kv.Config{
		Geometry: m.Geometry, Sample: m.sel.sample, HBMBytes: m.HBMBytes,
		Eviction: spec.Offload.Eviction, PerLayer: spec.Offload.Pool == "per-layer",
		Window:     spec.Offload.WorkingSetSteps,
		Microbatch: m.microbatch(), Score: m.sel.scores(), Trace: m.Trace,
		Addressed: m.Addressed, Tables: m.Addressed && spec.GPULookup(),
	})
	return &tiered{sizes: sizes{m, cache, sched.AllocatesByChunk(spec.Scheduler)}}, err
}

func (t *tiered) refuse(prompt, output, hit int) string {
	need := t.peakNeed(prompt, output, hit)
	have, _ := t.cache.Bytes()
	if need <= have {
		return ""
	}
	return fmt.Sprintf("alone it needs %d MiB of HBM, there are %d MiB for KV", need>>20, have>>20)
}

func (t *tiered) hbmUsed() int64 {
	_, reserved := t.cache.Bytes()
	return t.cache.Resident() + reserved
}

func (t *tiered) decodeBytes(context int) int64 { return t.sel.bytes(context) }

func (t *tiered) sampled(m *metrics.Run) {
	if sample := &t.cache.Sample; sample.Rate < 1 {
		m.Sampled(len(sample.Groups), t.Geometry.Groups(), t.cache.LoadError())
	}
}

func (t *tiered) drop(r *request) {
	if r.seq != nil {
		t.cache.Free(r.seq)
	}
	r.seq, r.pinned, r.buffers = nil, false, 0
}

func (t *tiered) begin() error {
	st := t.st
	t.layerMoves, st.seqs = layerMoves{runs: t.layersRun()}, st.seqs[:0]
	t.unpinAbsent()
	for i, r := range st.prefills {
		if err := t.beginPrefill(r, &st.batch.Prefills[i]); err != nil {
			return err
		}
	}
	for _, r := range st.decodes {
		if err := t.beginDecode(r); err != nil {
			return err
		}
	}
	st.meta.DRAMBytes = t.Used() * t.block
	t.cache.BeginStep(st.seqs)
	t.before = t.cache.Stats()
	return nil
}

func (t *tiered) beginPrefill(r *request, seg *sched.Segment) error {
	if r.seq == nil {
		t.openSeq(r)
		if t.Spec.Segmented() {
			r.buffers = t.segmentBuffers(r.Target, r.Hit)
		}
		if err := t.cache.Reserve(r.seq, t.metaBytes(r.Target)+r.buffers); err != nil {
			return err
		}
	}
	if !t.Spec.Segmented() {
		if err := t.cache.Reserve(r.seq, t.metaBytes(r.Target)+
			t.promptRest(r.Target, seg.TokenTo)); err != nil {
			return err
		}
		t.cache.Extend(r.seq, seg.TokenTo)
		r.seq.Pin(t.looseBlocks(seg.Req))
		if !r.pinned {
			r.pinned = true
			t.pinned = append(t.pinned, r)
		}
	}
	if t.selectsPrefix(seg.Req) {
		return t.selectPrefix(r)
	}
	return nil
}

func (t *tiered) beginDecode(r *request) error {
	context := r.Context()
	t.inFlight = t.inFlight || r.buffers > 0 // buffers stay until the prefill's saves are in DRAM
	t.st.seqs = append(t.st.seqs, r.seq)
	t.cache.Extend(r.seq, context)
	if context%t.Geometry.BlockTokens > 0 {
		return nil
	}
	return t.cache.Reserve(r.seq, t.metaBytes(context)+r.buffers)
}

func (t *tiered) end(now des.Time) {
	t.queueSaves()
	rec, before, after := &t.st.rec, &t.before, t.cache.Stats()
	t.completeSaves(now+max(0, rec.Timing.SavesDone), rec.Timing.SavedSteps)
	rec.Selected = t.cache.Scale(after.Selected - before.Selected)
	rec.Resumed = rec.Loaded + t.cache.Scale(after.Resumed-before.Resumed)
	rec.Loaded += t.cache.Scale(after.Loaded - before.Loaded)
	rec.Ahead = t.cache.Scale(after.Ahead - before.Ahead)
	rec.Evicted = t.cache.Scale(after.Evicted - t.evicted)
	t.evicted = after.Evicted
}

func (t *tiered) open(layer int) {
	if t.cache.Sample.Rate == 1 { // else the first layer does it for all
		t.resumed = t.cache.Stats().Resumed
		t.writePrefills(t.cache.Layers()[layer])
	}
}

// layersRun returns the number of layers that the batch runs.
func (t *tiered) layersRun() (n int) {
	if len(t.st.batch.Decodes) > 0 || !t.Spec.Segmented() {
		return t.Model.Layers
	}
	for layer := range t.Model.Layers {
		in := func(seg sched.Segment) bool { return seg.In(layer) }
		if slices.ContainsFunc(t.st.batch.Prefills, in) {
			n++
		}
	}
	return n
}

// unpinAbsent lets the cache evict the KV of chunked prefills that are not in this batch. Evicted
// blocks are loaded again when the prefill continues.
func (t *tiered) unpinAbsent() {
	kept := t.pinned[:0]
	for _, r := range t.pinned {
		if !r.pinned {
			continue // already completed or preempted
		}
		if r.Request != nil && t.st.batch.HasPrefill(r.Request) {
			kept = append(kept, r)
			continue
		}
		t.cache.Unpin(r.seq)
		r.pinned = false
	}
	t.pinned = kept
}

// move finds the blocks that a layer loads and saves and makes the device move them.
func (t *tiered) move(layer int) error {
	st := t.st
	var err error
	if t.cache.Sample.Rate == 1 {
		err = t.loadLayer(layer)
	} else {
		err = t.loadShare()
	}
	if err != nil {
		return err
	}
	st.moves.SavesInFlight = t.inFlight && st.moves.Loads > 0
	t.loadInRounds(layer)
	st.moves.InRounds = len(st.work.Rounds) > 0
	st.moves.Saves = int64(st.closedIn(layer, t.Geometry.BlockTokens)) * int64(t.Geometry.KVHeads)
	st.rec.Saved += st.moves.Saves
	overlapped := t.prefixLoads(layer)
	st.moves.Prefix += overlapped
	st.rec.Loaded += overlapped
	return t.Device.Move(&st.moves)
}

// loadLayer runs the cache accesses of a layer when the step reaches it. Every head is simulated.
func (t *tiered) loadLayer(layer int) (err error) {
	m, before := &t.st.moves, t.cache.Stats()
	m.Loads, err = t.access(t.cache.Layers()[layer])
	after := t.cache.Stats()
	m.Joined = after.Joined - before.Joined
	if t.adopts() {
		m.Prefix = after.Resumed - t.resumed
		m.Loads -= m.Prefix
	}
	return err
}

// loadShare runs the cache accesses of all sampled layers at the first layer of the step. It scales
// their loads to the whole model and spreads them evenly over the layers of the step.
func (t *tiered) loadShare() error {
	if t.ran == 0 {
		var sum, joined int64
		t.byRound = t.byRound[:0]
		for _, l := range t.cache.Layers() {
			t.writePrefills(l)
			had := t.cache.Stats().Joined
			n, err := t.access(l)
			if err != nil {
				return err
			}
			sum, joined = sum+n, joined+t.cache.Stats().Joined-had
			t.byRound = addRounds(t.byRound, t.cache.Rounds())
		}
		after := t.cache.Stats()
		t.loaded, t.joined = t.cache.Scale(sum), t.cache.Scale(joined)
		if t.adopts() {
			t.begun = t.cache.Scale(after.Resumed - t.before.Resumed)
			t.loaded -= t.begun
		}
	}
	m := &t.st.moves
	m.Loads, m.Prefix = share(t.loaded, t.ran, t.runs), share(t.begun, t.ran, t.runs)
	m.Joined = share(t.joined, t.ran, t.runs)
	t.ran++
	return nil
}

// writePrefills makes the prefills of one sampled layer write their blocks.
func (t *tiered) writePrefills(l *kv.Layer) {
	for _, r := range t.st.prefills {
		if r.pinned {
			t.cache.Write(l, r.seq)
		}
	}
}

// access applies the selections of one sampled layer to the cache and returns the number of blocks
// to load over its groups.
func (t *tiered) access(l *kv.Layer) (int64, error) {
	t.accessPrefixes(l)
	return t.path.access(l, t.sel.dense(l.Number))
}

// share returns the i-th of n parts of a step's total, which is spread evenly over its layers.
func share(all int64, i, n int) int64 {
	return all*int64(i+1)/int64(n) - all*int64(i)/int64(n)
}

// loadInRounds divides the layer's loads among its rounds. Blocks that are not candidates belong to
// the first round. Loads for rounds after the last one with attention are wasted.
func (t *tiered) loadInRounds(layer int) {
	w, loads := &t.st.work, t.st.moves.Loads
	if len(w.Rounds) == 0 {
		return
	}
	for i, n := range t.roundLoads(layer) {
		if n = min(n, loads); n == 0 {
			continue
		}
		for len(w.Rounds) <= i {
			w.Rounds = append(w.Rounds, Round{})
		}
		w.Rounds[i].Loads = n
		loads -= n
	}
	w.Rounds[0].Loads += loads
}

// roundLoads returns the number of candidates that a layer loads, by microbatch. Loads of sampled
// heads are spread evenly over the layers.
func (t *tiered) roundLoads(layer int) []int64 {
	if t.cache.Sample.Rate == 1 {
		return t.cache.Rounds()
	}
	t.loads = t.loads[:0]
	for _, n := range t.byRound {
		t.loads = append(t.loads, share(t.cache.Scale(n), layer, t.Model.Layers))
	}
	return t.loads
}

func addRounds(sum, n []int64) []int64 {
	for len(sum) < len(n) {
		sum = append(sum, 0)
	}
	for i := range n {
		sum[i] += n[i]
	}
	return sum
}

func (t *tiered) prefilled(r *request) error {
	r.grid = -2 // decodes do not continue a chunk's selection
	if r.pinned {
		t.cache.Unpin(r.seq)
		r.pinned = false
		return nil
	}
	// The open blocks move from the prefill's buffers to slots.
	r.buffers -= t.allBlocks(1)
	if err := t.cache.Reserve(r.seq, t.metaBytes(r.Target)+r.buffers); err != nil {
		return err
	}
	t.cache.Extend(r.seq, r.Target)
	if err := t.cache.Segmented(r.seq); err != nil {
		return err
	}
	if r.buffers == 0 { // its saves ended within the step
		t.nameBlocks(r)
	}
	return nil
}
