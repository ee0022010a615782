package live

import (
	"fmt"
	"time"

	"sparseserve/cuda"
	"sparseserve/sim/kv"
)

// Move implements sim.Device: it names the layer's misses and their slots. Compute loads them, with the one upload that carries the addresses and
// all else that the layer needs. Saves follow from what Compute writes.
func (d *Device) Move(m *kv.Moves) error {
	d.enter(&d.counters.Lookup)
	defer d.leave()
	d.queue.at(d.step.Index, m.Layer)
	if err := d.nameLoads(m); err != nil {
		return told(err, "step %d, layer %d, loading %d blocks", d.step.Index, m.Layer, m.Loads)
	}
	return nil
}

// loading is what a layer's Move has left to Compute.
type loading struct {
	count int
	args  cuda.BlocksArgs
}

func (d *Device) nameLoads(m *kv.Moves) error {
	n := len(m.LoadRefs)
	d.nameRounds(m)
	if d.active.layer != m.Layer { // Score has not begun the layer: attend marks where a round trip ends
		if err := d.clock.mark(phaseHost); err != nil {
			return err
		}
	}
	if d.lookup.on {
		return d.nameChanges(m)
	}
	if n == 0 {
		return nil
	}
	place := d.stage.note // copies by the engine read the addresses on the host
	if d.cfg.Spec.LoadEngine == "flash" {
		place = d.stage.longs
	}
	addresses, at, err := place(2 * n)
	if err != nil {
		return err
	}
	var r *request
	seq, size := int32(-1), d.geo.BlockBytes
	for i := range m.LoadRefs {
		ref := &m.LoadRefs[i]
		if ref.Seq != seq { // those of a request follow one another
			seq, r = ref.Seq, d.bySeq[ref.Seq]
		}
		if r == nil || int(ref.Block) >= len(r.pages) {
			return fmt.Errorf("block %d of handle %d was never saved", ref.Block, ref.Seq)
		}
		if len(r.saves) > 0 { // it may still be on its way to DRAM
			if err := r.waitFor(d.saver, int(ref.Block)); err != nil {
				return err
			}
		}
		addresses[i] = int64(d.dram.block(r.pages[ref.Block], int(ref.Group)))
		addresses[n+i] = int64(d.pool) + int64(ref.Slot)*size
	}
	d.loading = loading{n, cuda.BlocksArgs{Src: at, Dst: at + cuda.Ptr(8*n), Count: int64(n), BlockBytes: size}}
	return nil
}

// startLoads loads what Move named; the addresses are where the engine reads them.
func (d *Device) startLoads() error {
	l := &d.loading
	if d.progressive.on || !d.lookup.on && l.count == 0 || d.lookup.on && d.lookup.args.Batch == 0 {
		return nil // what the GPU found missing only it knows: it is asked in any case
	}
	if err := d.loader()(&l.args, d.stream); err != nil {
		return fmt.Errorf("loading %d blocks: %w", l.count, err)
	}
	d.counters.Loaded += int64(l.count)
	l.count = 0
	return d.clock.mark(phaseLoadStall)
}

// loader is the system's way to load.
func (d *Device) loader() func(*cuda.BlocksArgs, cuda.Stream) error {
	if d.cfg.Spec.LoadEngine == "flash" {
		return d.m.FlashH2D
	}
	return d.m.MemcpyBlocks
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
	digest        cuda.DigestArgs
}

func (c *closed) slot(h, b, heads int) int64 {
	if c.page {
		return int64(c.req.pages[b])*int64(heads) + int64(h)
	}
	return int64(c.slots[h*c.stride+b-c.first])
}

// planClosed readies digests and saves of the blocks that become full.
func (d *Device) planClosed(layer int) error {
	p := &d.plan
	for i := range p.closed {
		c := &p.closed[i]
		if d.sparse {
			if err := d.planDigest(layer, c); err != nil {
				return err
			}
		}
		if d.offload {
			d.planSaves(i, c)
		}
	}
	for i := range p.saves {
		s := &p.saves[i]
		at, end, ok := d.saver.tryReserve(s.n)
		if !ok {
			break // those before it must go first
		}
		if err := d.address(layer, s, at, end); err != nil {
			return err
		}
	}
	return nil
}

// closeBlocks digests full blocks and sends them to DRAM.
func (d *Device) closeBlocks(layer int) error {
	p := &d.plan
	for i := range p.stashes {
		if err := d.m.GPUScatter(&p.stashes[i], d.stream); err != nil {
			return fmt.Errorf("open blocks: %w", err)
		}
	}
	next := 0
	for i := range p.closed {
		if d.sparse {
			if err := d.m.Digest(&p.closed[i].digest, d.stream); err != nil {
				return err
			}
			if err := d.clock.mark(phaseScoring); err != nil {
				return err
			}
		}
		for ; next < len(p.saves) && p.saves[next].closed == i; next++ {
			if err := d.save(layer, &p.saves[next]); err != nil {
				return err
			}
		}
	}
	return nil
}

// planDigest readies the selection metadata of full blocks.
func (d *Device) planDigest(layer int, c *closed) error {
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
	c.digest = cuda.DigestArgs{
		Pool: c.pool, Slot: at, Dst: toAt, Meta: c.req.meta.at, Count: int64(n), HeadDim: int32(d.model.HeadDim), BlockTokens: int32(d.geo.BlockTokens),
	}
	return nil
}

// part is one job of the saver: n blocks of a closed run, from the given one on.
type part struct {
	closed   int // in plan.closed
	from, n  int64
	at, end  int64 // in the ring, once it has its place there
	args     cuda.BlocksArgs
	reserved bool
}

// planSaves divides a closed run into jobs.
func (d *Device) planSaves(i int, c *closed) {
	all := int64(d.geo.KVHeads * (c.to - c.from))
	for from := int64(0); from < all; {
		n := min(all-from, d.saver.most())
		d.plan.saves = append(d.plan.saves, part{closed: i, from: from, n: n})
		from += n
	}
}

// address names the blocks of a job whose place in the ring begins at at: head after head, but block of tokens after block of tokens where each is
// copied on its own. The KV heads of one lie side by side in DRAM, so that the copy engine should look its page up once, not once a head.
func (d *Device) address(layer int, s *part, at, end int64) error {
	c, heads := &d.plan.closed[s.closed], d.geo.KVHeads
	addresses, to, err := d.stage.longs(int(2 * s.n))
	if err != nil {
		return err
	}
	byPlace := d.saver.engine == "memcpy"
	for i := range s.n {
		h, b := int(s.from+i)/(c.to-c.from), c.from+int(s.from+i)%(c.to-c.from)
		if byPlace {
			h, b = int(s.from+i)%heads, c.from+int(s.from+i)/heads
		}
		addresses[i] = int64(c.pool) + c.slot(h, b, heads)*d.geo.BlockBytes
		addresses[s.n+i] = int64(d.saver.ring) + (at+i)*d.geo.BlockBytes
		d.saver.to(at+i, d.dram.block(c.req.pages[b], layer*heads+h))
	}
	s.at, s.end, s.reserved = at, end, true
	s.args = cuda.BlocksArgs{Src: to, Dst: to + cuda.Ptr(8*s.n), Count: s.n, BlockBytes: d.geo.BlockBytes, CTAs: int32(min(s.n, RingCTAs))}
	return nil
}

// save copies a job's blocks to the ring and hands them over. One that found no room there waits for it, and uploads its addresses then.
func (d *Device) save(layer int, s *part) error {
	if !s.reserved {
		start := time.Now()
		at, end, waited, err := d.saver.reserve(s.n)
		if err != nil {
			return err
		}
		if waited {
			d.counters.Saving += time.Since(start)
		}
		if err := d.address(layer, s, at, end); err != nil {
			return err
		}
		if err := d.stage.send(d.stream); err != nil {
			return err
		}
	}
	if err := d.m.GPUScatter(&s.args, d.stream); err != nil {
		return err
	}
	job, err := d.saver.submit(d.step.Index, layer, s.at, s.n, s.end, d.stream)
	if err != nil {
		return err
	}
	c := &d.plan.closed[s.closed]
	c.req.note(c.from, c.to, job)
	d.counters.Saved += s.n
	return d.clock.mark(phaseSaveStall) // the copy, and the wait before it
}

// RingCTAs copy within HBM at its speed.
const RingCTAs = 264
