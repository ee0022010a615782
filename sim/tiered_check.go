package sim

import "fmt"

func (t *tiered) check() error {
	if err := t.resident.check(); err != nil {
		return err
	}
	if err := t.cache.Check(); err != nil {
		return err
	}
	if err := t.checkHBM(); err != nil {
		return err
	}
	return t.checkSaves()
}

// checkHBM verifies law 2 in addition to the pools' own checks: the cache's capacity fits in the
// HBM left by the model, and the reservation covers the metadata of all blocks and the buffers of
// all running layer-segmented prefills.
func (t *tiered) checkHBM() error {
	total, reserved := t.cache.Bytes()
	if slack := t.sampleSlack(); total > t.HBMBytes+slack {
		return fmt.Errorf("law 2: the cache has %d bytes of HBM, the card has %d for KV", total,
			t.HBMBytes)
	}
	var need int64
	for _, r := range t.requests {
		if r.seq == nil {
			continue
		}
		written := r.Done
		if r.Decoding() {
			written = r.Context() - 1
		}
		need += t.metaBytes(written) + r.buffers
	}
	if need > reserved {
		return fmt.Errorf("law 2: %d bytes reserved, metadata and prefill buffers take %d",
			reserved, need)
	}
	return nil
}

// checkSaves verifies law 3 in the server: every full block is in DRAM or queued to be saved. The
// cache checks that queued blocks are held in HBM.
func (t *tiered) checkSaves() error {
	for _, r := range t.requests {
		if r.seq == nil {
			continue
		}
		full, saved := r.seq.Full()
		for i := range t.saves {
			if j := &t.saves[i]; j.seq == r.seq && j.owner == r.seq.Owner() && !j.frees {
				saved = max(saved, j.blocks)
			}
		}
		if saved < full {
			return fmt.Errorf("law 3: request %d has %d full blocks, %d saved or queued for saving", r.ID,
				full, saved)
		}
	}
	return nil
}

// checkBatch verifies law 8 when a step begins. With batch control, the working sets of the batch
// fit in HBM together with everything that cannot be evicted, or the batch is a single request.
func (t *tiered) checkBatch() error {
	n := len(t.st.batch.Decodes) + len(t.st.batch.Prefills)
	if !t.Spec.Offload.BatchControl || n < 2 {
		return nil
	}
	total, need := t.cache.Bytes() // reserved: metadata and buffers
	need += t.cache.Held(nil)
	for _, r := range t.st.decodes {
		need += t.workingSet(r) - t.cache.Held(r.seq)
	}
	for i, r := range t.st.prefills {
		seg := &t.st.batch.Prefills[i]
		if r.pinned {
			need += t.allBlocks(t.Geometry.Blocks(seg.TokenTo)-t.looseBlocks(seg.Req)) -
				t.cache.Held(r.seq)
		}
		need += t.prefixSet(seg.Req, true)
	}
	if need > total+int64(n+2)*t.sampleSlack() {
		return fmt.Errorf("law 8: a batch of %d requests needs %d bytes of HBM, there are %d", n,
			need, total)
	}
	return nil
}
