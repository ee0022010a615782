package sim

import "fmt"

// check verifies the laws that hold between events: blocks (law 1), HBM (law 2), saved KV (law 3),
// requests and tokens (law 4). Tests call it; builds with the tag lawcheck call it after every
// event.
func (s *Server) check() error {
	emitted, err := s.checkRequests()
	if err != nil {
		return err
	}
	if err := s.metrics.check(len(s.requests), emitted); err != nil {
		return err
	}
	return s.checkBlocks()
}

// checkBlocks verifies laws 1 to 3 of one server, alone or in a fleet.
func (s *Server) checkBlocks() error {
	if used, total := s.memory.Used(), s.memory.Total(); used < 0 || used > total {
		return fmt.Errorf("law 1: %d blocks used of %d", used, total)
	}
	if s.prefixes != nil {
		if err := s.prefixes.Check(s.tables); err != nil {
			return fmt.Errorf("law 1: %w", err)
		}
	}
	if s.hot != nil {
		if err := s.hot.memory.Check(s.grants); err != nil {
			return fmt.Errorf("law 2: %w", err)
		}
	}
	if s.cache == nil {
		return nil
	}
	if err := s.cache.Check(); err != nil {
		return err
	}
	if err := s.checkHBM(); err != nil {
		return err
	}
	return s.checkSaves()
}

// checkRequests verifies law 4 within the server and returns the number of tokens that its requests
// have emitted.
func (s *Server) checkRequests() (emitted int64, err error) {
	if w, r := s.sched.Waiting()+len(s.arrivedLate), s.sched.Running(); w+r != len(s.requests) {
		return 0, fmt.Errorf("law 4: %d requests in flight, %d waiting + %d running",
			len(s.requests), w, r)
	}
	for _, r := range s.requests {
		emitted += int64(r.Generated)
		if r.Generated > r.Output {
			return 0, fmt.Errorf("law 4: request %d emitted %d of %d tokens", r.ID, r.Generated, r.Output)
		}
	}
	return emitted, nil
}

// checkHBM verifies law 2 in addition to the pools' own checks: the cache's capacity fits in the
// HBM left by the model, and the reservation covers the metadata of all blocks and the buffers of
// all running layer-segmented prefills.
func (s *Server) checkHBM() error {
	total, reserved := s.cache.Bytes()
	if slack := s.sampleSlack(); total > s.HBMBytes+slack {
		return fmt.Errorf("law 2: the cache has %d bytes of HBM, the card has %d for KV", total,
			s.HBMBytes)
	}
	var need int64
	for _, r := range s.requests {
		if r.seq == nil {
			continue
		}
		written := r.Done
		if r.Decoding() {
			written = r.Context() - 1
		}
		need += s.metaBytes(written) + r.buffers
	}
	if need > reserved {
		return fmt.Errorf("law 2: %d bytes reserved, metadata and prefill buffers take %d",
			reserved, need)
	}
	return nil
}

// sampleSlack returns the bytes that rounding a sample to whole blocks may add, scaled to the
// model.
func (s *Server) sampleSlack() int64 {
	if s.cache.Sample.Rate == 1 {
		return 0
	}
	return int64(float64(s.Geometry.BlockBytes) / s.cache.Sample.Rate)
}

// checkSaves verifies law 3 in the server: every full block is in DRAM or queued to be saved. The
// cache checks that queued blocks are held in HBM.
func (s *Server) checkSaves() error {
	for _, r := range s.requests {
		if r.seq == nil {
			continue
		}
		full, saved := r.seq.Full()
		for i := range s.saves {
			if j := &s.saves[i]; j.seq == r.seq && j.owner == r.seq.Owner() && !j.frees {
				saved = max(saved, j.blocks)
			}
		}
		if saved < full {
			return fmt.Errorf("law 3: request %d has %d full blocks, %d of them saved or queued to be", r.ID,
				full, saved)
		}
	}
	return nil
}

// checkBatch verifies law 8 when a step begins. With batch control, the working sets of the batch
// fit in HBM together with everything that cannot be evicted, or the batch is a single request.
func (s *Server) checkBatch() error {
	n := len(s.batch.Decodes) + len(s.batch.Prefills)
	if s.cache == nil || !s.Spec.Offload.BatchControl || n < 2 {
		return nil
	}
	total, need := s.cache.Bytes() // reserved: metadata and buffers
	need += s.cache.Held(nil)
	for _, r := range s.step.decodes {
		need += s.workingSet(r) - s.cache.Held(r.seq)
	}
	for i := range s.batch.Prefills {
		seg := &s.batch.Prefills[i]
		if r := s.requests[seg.Req]; r.pinned {
			need += s.allBlocks(s.Geometry.Blocks(seg.TokenTo)-s.looseBlocks(seg.Req)) -
				s.cache.Held(r.seq)
		}
		need += s.prefixSet(seg.Req, true)
	}
	if need > total+int64(n+2)*s.sampleSlack() {
		return fmt.Errorf("law 8: a batch of %d requests needs %d bytes of HBM, there are %d", n,
			need, total)
	}
	return nil
}
