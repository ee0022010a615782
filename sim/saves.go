package sim

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// saveJob is a range of blocks that is being saved to DRAM. The step that completes the blocks
// queues it; it ends when the device reports it.
type saveJob struct {
	step   int64 // step that queued it
	req    *request
	seq    *kv.Seq
	owner  uint32 // owner of seq when queued; seq may be reused since
	blocks int    // leading full blocks in DRAM after the save
	frees  bool   // the save frees the buffers of a layer-segmented prefill
}

// queueSaves queues the blocks that this step saves to DRAM.
func (t *tiered) queueSaves() {
	size := t.Geometry.BlockTokens
	for _, r := range t.st.decodes {
		if r.Context()%size == 0 {
			t.queueSave(saveJob{step: t.st.meta.Index, req: r, seq: r.seq, owner: r.seq.Owner(),
				blocks: r.Context() / size})
		}
	}
	for i, r := range t.st.prefills {
		seg := &t.st.batch.Prefills[i]
		job := saveJob{step: t.st.meta.Index, req: r, seq: r.seq, owner: r.seq.Owner(),
			blocks: seg.TokenTo / size}
		switch {
		case r.pinned && job.blocks > seg.TokenFrom/size:
			t.queueSave(job)
		case !r.pinned && seg.Completes(t.Model.Layers):
			job.frees = true
			t.queueSave(job)
		}
	}
}

func (t *tiered) queueSave(j saveJob) {
	t.saves = append(t.saves, j)
	if t.pool != nil {
		t.pool.Save(j.req.Grant, j.blocks, j.step)
	}
}

func (t *tiered) saved(step int64) error {
	n := 0
	for i := range t.saves {
		j := &t.saves[i]
		if j.step > step {
			break
		}
		n++
		if j.req.seq != j.seq || j.seq.Owner() != j.owner {
			continue
		}
		if !j.frees {
			t.cache.Saved(j.seq, j.blocks)
			t.nameBlocks(j.req)
			continue
		}
		j.req.buffers = 0
		if !j.req.Decoding() {
			j.req.buffers = t.allBlocks(1) // open blocks get slots at the step's end
		}
		if err := t.cache.Reserve(j.seq, t.metaBytes(j.req.Context())+j.req.buffers); err != nil {
			return err
		}
		t.nameBlocks(j.req)
	}
	t.saves = t.saves[:copy(t.saves, t.saves[n:])]
	if t.pool != nil {
		t.pool.Saved(step)
	}
	return nil
}

func (t *tiered) drain(now des.Time) error {
	if n := len(t.saves); n == 0 || t.saves[n-1].step < t.savedSteps {
		return nil
	}
	at, err := t.Device.Drain()
	if err != nil {
		return err
	}
	t.completeSaves(max(now, t.st.meta.Start+at), t.st.meta.Index+1)
	return nil
}

// completeSaves schedules the completion of the saves of the first n steps.
func (t *tiered) completeSaves(at des.Time, n int64) {
	for i := range t.saves {
		if j := t.saves[i].step; j >= t.savedSteps && j < n {
			t.savedSteps = n
			t.schedule(at, saveDone, n-1)
			return
		}
	}
}
