package live

import (
	"fmt"
	"time"

	"sparseserve/cuda"
	"sparseserve/sim/kv"
)

// Move implements sim.Device: it loads the layer's misses into their slots. Saves follow from what Compute writes.
func (d *Device) Move(m *kv.Moves) error {
	d.enter(&d.counters.Lookup)
	defer d.leave()
	if err := d.load(m); err != nil {
		return fmt.Errorf("live: step %d, layer %d, loading %d blocks: %w", d.step.Index, m.Layer, m.Loads, err)
	}
	return nil
}

func (d *Device) load(m *kv.Moves) error {
	n := len(m.LoadRefs)
	if err := d.clock.mark(phaseHost); err != nil || n == 0 {
		return err
	}
	addresses, at, err := d.stage.longs(2 * n)
	if err != nil {
		return err
	}
	for i, ref := range m.LoadRefs {
		r := d.bySeq[ref.Seq]
		if r == nil || int(ref.Block) >= len(r.pages) {
			return fmt.Errorf("block %d of handle %d was never saved", ref.Block, ref.Seq)
		}
		if err := r.waitFor(d.saver, int(ref.Block)); err != nil { // it may still be on its way to DRAM
			return err
		}
		addresses[i] = int64(d.dram.block(r.pages[ref.Block], int(ref.Group)))
		addresses[n+i] = int64(d.pool) + int64(ref.Slot)*d.geo.BlockBytes
	}
	a := &cuda.BlocksArgs{Src: at, Dst: at + cuda.Ptr(8*n), Count: int64(n), BlockBytes: d.geo.BlockBytes}
	if d.cfg.Spec.LoadEngine == "flash" {
		if err := d.stage.send(d.stream); err != nil {
			return err
		}
		err = d.m.FlashH2D(a, d.stream)
	} else {
		// Copies by the engine read the addresses on the host.
		a.Src, a.Dst = d.stage.pinned(a.Src), d.stage.pinned(a.Dst)
		move := d.m.MemcpyBlocks
		if d.cfg.Spec.LoadEngine == "batched" {
			move = d.m.MemcpyBatch
		}
		err = move(a, d.stream)
	}
	if err != nil {
		return err
	}
	d.counters.Loaded += int64(n)
	return d.clock.mark(phaseLoadStall)
}

// closed are blocks [from, to) of every KV head of one layer that have just become full. Block b of head h lies in slot
// slots[h * stride + b - first] of pool, or is told by its page.
type closed struct {
	req           *request
	pool          cuda.Ptr
	from, to      int
	slots         []int32
	stride, first int
	page          bool
}

func (c *closed) slot(h, b, heads int) int64 {
	if c.page {
		return int64(c.req.pages[b])*int64(heads) + int64(h)
	}
	return int64(c.slots[h*c.stride+b-c.first])
}

// closeBlocks digests full blocks and sends them to DRAM.
func (d *Device) closeBlocks(layer int) error {
	for i := range d.plan.stashes {
		if err := d.m.GPUScatter(&d.plan.stashes[i], d.stream); err != nil {
			return fmt.Errorf("open blocks: %w", err)
		}
	}
	for i := range d.plan.closed {
		c := &d.plan.closed[i]
		if d.sparse {
			if err := d.digest(layer, c); err != nil {
				return err
			}
		}
		if d.offload {
			if err := d.save(layer, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// digest makes the selection metadata of full blocks.
func (d *Device) digest(layer int, c *closed) error {
	heads, n := d.geo.KVHeads, d.geo.KVHeads*(c.to-c.from)
	slots, at, err := d.stage.words(n)
	if err != nil {
		return err
	}
	to, toAt, err := d.stage.longs(n)
	if err != nil {
		return err
	}
	i := 0
	for h := range heads {
		for b := c.from; b < c.to; b++ {
			slots[i] = int32(c.slot(h, b, heads))
			to[i] = int64((layer*heads+h)*c.req.metaBlocks + b)
			i++
		}
	}
	if err := d.stage.send(d.stream); err != nil {
		return err
	}
	err = d.m.Digest(&cuda.DigestArgs{
		Pool: c.pool, Slot: at, Dst: toAt, Meta: c.req.meta.at, Count: int64(n), HeadDim: int32(d.model.HeadDim), BlockTokens: int32(d.geo.BlockTokens),
	}, d.stream)
	if err != nil {
		return err
	}
	return d.clock.mark(phaseScoring)
}

// save copies full blocks to the ring, part by part, and hands them over.
func (d *Device) save(layer int, c *closed) error {
	heads := d.geo.KVHeads
	all := int64(heads * (c.to - c.from))
	for done := int64(0); done < all; {
		n := min(all-done, d.saver.most())
		start := time.Now()
		at, waited, err := d.saver.reserve(n)
		if err != nil {
			return err
		}
		if waited {
			d.counters.Saving += time.Since(start)
			if err := d.clock.mark(phaseSaveStall); err != nil {
				return err
			}
		}
		addresses, to, err := d.stage.longs(int(2 * n))
		if err != nil {
			return err
		}
		for i := range n {
			h, b := int(done+i)/(c.to-c.from), c.from+int(done+i)%(c.to-c.from)
			addresses[i] = int64(c.pool) + c.slot(h, b, heads)*d.geo.BlockBytes
			addresses[n+i] = int64(d.saver.ring) + (at+i)*d.geo.BlockBytes
			d.saver.to(at+i, d.dram.block(c.req.pages[b], layer*heads+h))
		}
		if err := d.stage.send(d.stream); err != nil {
			return err
		}
		a := &cuda.BlocksArgs{Src: to, Dst: to + cuda.Ptr(8*n), Count: n, BlockBytes: d.geo.BlockBytes, CTAs: int32(min(n, ringCTAs))}
		if err := d.m.GPUScatter(a, d.stream); err != nil {
			return err
		}
		job, err := d.saver.submit(d.step.Index, layer, at, n, d.stream)
		if err != nil {
			return err
		}
		c.req.note(c.to, job)
		done += n
	}
	d.counters.Saved += all
	return nil
}

// ringCTAs copy within HBM at its speed.
const ringCTAs = 264
