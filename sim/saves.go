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

// digestsIn returns the number of requests with blocks that need digests in a layer, and the number
// of these blocks per KV head: blocks that become full, and prefix blocks that a prefill loads
// whole.
func (s *Server) digestsIn(layer int) (requests, blocks int) {
	requests, blocks = s.closedIn(layer)
	for i := range s.batch.Prefills {
		seg := &s.batch.Prefills[i]
		if !seg.In(layer) || seg.Req.Hit == 0 || seg.TokenFrom > seg.Req.Hit || s.selectsPrefix(seg.Req) {
			continue
		}
		blocks += s.hitBlocks(seg.Req)
		if size := s.Geometry.BlockTokens; seg.TokenTo/size == seg.TokenFrom/size {
			requests++
		}
	}
	return requests, blocks
}

// closedIn returns the number of requests with blocks that a layer's computation fills, and the
// number of these blocks per KV head.
func (s *Server) closedIn(layer int) (requests, blocks int) {
	requests, blocks = s.step.closing, s.step.closing
	size := s.Geometry.BlockTokens
	for i := range s.batch.Prefills {
		if seg := &s.batch.Prefills[i]; seg.In(layer) {
			if n := seg.TokenTo/size - seg.TokenFrom/size; n > 0 {
				requests, blocks = requests+1, blocks+n
			}
		}
	}
	return requests, blocks
}

// savesOf returns the number of blocks that a layer's computation fills, over all KV heads.
func (s *Server) savesOf(layer int) int64 {
	_, n := s.closedIn(layer)
	return int64(n) * int64(s.Geometry.KVHeads)
}

// queueSaves queues the blocks that this step saves to DRAM.
func (s *Server) queueSaves() {
	size := s.Geometry.BlockTokens
	for _, r := range s.step.decodes {
		if r.Context()%size == 0 {
			s.queueSave(saveJob{step: s.steps, req: r, seq: r.seq, owner: r.seq.Owner(),
				blocks: r.Context() / size})
		}
	}
	for i := range s.batch.Prefills {
		seg := &s.batch.Prefills[i]
		r := s.requests[seg.Req]
		job := saveJob{step: s.steps, req: r, seq: r.seq, owner: r.seq.Owner(),
			blocks: seg.TokenTo / size}
		switch {
		case r.pinned && job.blocks > seg.TokenFrom/size:
			s.queueSave(job)
		case !r.pinned && seg.Completes(s.Model.Layers):
			job.frees = true
			s.queueSave(job)
		}
	}
}

func (s *Server) queueSave(j saveJob) {
	s.saves = append(s.saves, j)
	if s.pool != nil {
		j.req.table.Saving(j.blocks, j.step)
	}
}

// markSaved marks the blocks of all saves up to a step as in DRAM.
func (s *Server) markSaved(step int64) error {
	n := 0
	for i := range s.saves {
		j := &s.saves[i]
		if j.step > step {
			break
		}
		n++
		if j.req.seq != j.seq || j.seq.Owner() != j.owner {
			continue
		}
		if !j.frees {
			s.cache.Saved(j.seq, j.blocks)
			s.nameBlocks(j.req)
			continue
		}
		j.req.buffers = 0
		if !j.req.Decoding() {
			j.req.buffers = s.allBlocks(1) // open blocks get slots at the step's end
		}
		if err := s.cache.Reserve(j.seq, s.metaBytes(j.req.Context())+j.req.buffers); err != nil {
			return err
		}
		s.nameBlocks(j.req)
	}
	s.saves = s.saves[:copy(s.saves, s.saves[n:])]
	if s.pool != nil {
		s.pool.Saved(step)
	}
	return nil
}

// drain asks the device for saves that no step has reported and that a request may wait for.
func (s *Server) drain(now des.Time) error {
	if n := len(s.saves); n == 0 || s.saves[n-1].step < s.savedSteps {
		return nil
	}
	at, err := s.Device.Drain()
	if err != nil {
		return err
	}
	s.completeSaves(max(now, s.step.meta.Start+at), s.steps)
	return nil
}

// completeSaves schedules the completion of the saves of the first n steps.
func (s *Server) completeSaves(at des.Time, n int64) {
	for i := range s.saves {
		if j := s.saves[i].step; j >= s.savedSteps && j < n {
			s.savedSteps = n
			s.schedule(at, saveDone, n-1)
			return
		}
	}
}
