package sim

import (
	"slices"

	"github.com/sparseserve/sparseserve/sim/sched"
)

// hbmLimit limits batches of a tiered memory by the HBM that each candidate request needs
// (sched.Limit). With batch control it uses Algorithm 1's working sets, otherwise the minimum that
// must be resident for the step to run.
type hbmLimit struct{ *tiered }

// Available returns the HBM without metadata, prefill buffers and held blocks. Held blocks are
// open, waiting to be saved, or part of a running chunked prefill.
func (t hbmLimit) Available() int64 {
	total, reserved := t.cache.Bytes()
	return total - reserved - t.cache.Held(nil) - t.cache.Rounding()
}

// Decode returns a decode's working set without open blocks: the union of the blocks that its last
// w steps selected, or one step's selection before its first step. Without batch control it returns
// the bytes that must be in HBM at once.
func (t hbmLimit) Decode(sr *sched.Request) int64 {
	context := sr.Context()
	need := t.selectedAtOnce(context) + t.opens(context)
	if !t.Spec.Offload.BatchControl {
		return need
	}
	set := t.workingSet(t.requests[sr])
	if !t.Spec.Sparse() || t.Spec.Selection.RecentBlocks > 0 {
		set -= t.allBlocks(1) // the open block is counted as held
	}
	return max(need, set+t.opens(context))
}

// workingSet returns the bytes of the blocks that a decode's last steps selected: at least one
// step's selection if known, the budget before the first step. With selection per query head the
// budget is a lower bound, which also covers a newly opened block. PSA and InfiniGen have no lower
// bound: a step may select more than the previous one, and this is not predicted.
func (t *tiered) workingSet(r *request) int64 {
	if r.seq == nil || !r.Decoding() {
		return t.decodeBytes(r.Context())
	}
	set := t.cache.WorkingSet(r.seq)
	if t.sel.apart {
		set = max(set, t.sel.bytes(r.Context()))
	}
	if t.Spec.Sparse() && !t.sel.fixed && r.steps > 0 {
		dense := int64(t.Geometry.Blocks(r.Context())*min(t.Spec.Selection.DenseLayers,
			t.Model.Layers)) * t.layerOfBlocks()
		return max(set, dense+r.selected*t.Geometry.BlockBytes)
	}
	return max(set, t.sel.bytes(r.Context()))
}

// Prefill returns the additional HBM of a prefill: all layers of all chunks so far and the blocks
// granted for the rest, or the buffers of a layer-segmented prefill, which are already reserved
// while it runs.
func (t hbmLimit) Prefill(seg *sched.Segment) int64 {
	return t.prefill(seg) + t.prefixSet(seg.Req, t.Spec.Offload.BatchControl)
}

// prefill is Prefill without the selected prefix blocks.
func (t hbmLimit) prefill(seg *sched.Segment) int64 {
	r := t.requests[seg.Req]
	meta := t.metaBytes(seg.Req.Target)
	if r.seq != nil {
		meta = 0 // already reserved with the first segment
	}
	if t.Spec.Segmented() {
		if r.seq != nil {
			return 0
		}
		return t.segmentBuffers(seg.Req.Target, seg.Req.Hit) + meta
	}
	held, granted := int64(0), int64(0)
	if r.seq != nil {
		held, granted = t.cache.Held(r.seq), t.promptRest(seg.Req.Target, seg.TokenFrom)
	}
	return t.allBlocks(t.Geometry.Blocks(seg.TokenTo)-t.looseBlocks(seg.Req)) - held +
		t.promptRest(seg.Req.Target, seg.TokenTo) - granted + meta
}

// CanRun implements sched.Limit. Metadata, buffers and unsaved blocks of all requests cannot be
// evicted.
func (t hbmLimit) CanRun(sr *sched.Request, seg *sched.Segment, preempted []*sched.Request) bool {
	total, reserved := t.cache.Bytes()
	free := total - reserved - t.cache.Rounding()
	for _, r := range t.requests {
		switch {
		case r.seq == nil:
		case slices.Contains(preempted, r.Request):
			free += r.seq.Reserved()
		case seg != nil && r.Request == sr:
		default:
			_, saved := r.seq.Full()
			free -= t.allBlocks(r.seq.Blocks() - saved)
		}
	}
	if seg == nil {
		return t.selectedAtOnce(sr.Context())+t.opens(sr.Context()) <= free
	}
	need := t.prefill(seg) + t.prefixSet(sr, false)
	if r := t.requests[sr]; r.seq != nil {
		need += t.cache.Held(r.seq)
	}
	return need <= free
}

// SavesInFlight implements sched.Limit.
func (t hbmLimit) SavesInFlight() bool { return len(t.saves) > 0 }
