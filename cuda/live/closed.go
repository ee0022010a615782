package live

import (
	"time"

	"github.com/sparseserve/sparseserve/cuda"
)

// closed are blocks [from, to) of every KV head of one layer that have just become full. Block b of
// head h is in slot slots[h * stride + b - first] of pool, or in its page.
type closed struct {
	req           *request
	pool          cuda.Ptr
	from, to      int
	slots         []int32
	stride, first int
	page          bool
	digest        *cuda.DigestArgs
}

func (c *closed) slot(h, b, heads int) int64 {
	if c.page {
		return int64(c.req.pages[b])*int64(heads) + int64(h)
	}
	return int64(c.slots[h*c.stride+b-c.first])
}

// planClosed prepares digests and saves of the blocks that become full.
func (d *paged) planClosed(layer int) {
	p := &d.plan
	for i := range p.closed {
		c := &p.closed[i]
		if d.sparse {
			d.planDigest(layer, c)
		}
		if d.offload {
			d.planSaves(i, c)
		}
	}
	for i := range p.saves {
		s := &p.saves[i]
		at, end, ok := d.saver.tryReserve(s.n)
		if !ok {
			break // jobs are queued in order
		}
		d.address(layer, s, at, end)
	}
}

// closeBlocks digests full blocks and saves them to DRAM.
func (d *paged) closeBlocks(layer int) {
	p := &d.plan
	d.launch(p.stashes...)
	next := 0
	for i := range p.closed {
		if d.sparse {
			d.launch(p.closed[i].digest)
			d.clock.mark(phaseScoring)
		}
		for ; next < len(p.saves) && p.saves[next].closed == i; next++ {
			d.save(layer, &p.saves[next])
		}
	}
}

// planDigest prepares the selection metadata of full blocks.
func (d *paged) planDigest(layer int, c *closed) {
	heads, n := d.geo.KVHeads, d.geo.KVHeads*(c.to-c.from)
	slots, at := d.stage.Words(n)
	to, toAt := d.stage.Longs(n)
	i := 0
	for h := range heads {
		for b := c.from; b < c.to; b++ {
			slots[i], to[i] = int32(c.slot(h, b, heads)), int64((layer*heads+h)*c.req.metaBlocks+b)
			i++
		}
	}
	c.digest = &cuda.DigestArgs{
		Pool: c.pool, Slot: at, Dst: toAt, Meta: c.req.meta.At, Count: int64(n),
		HeadDim: int32(d.model.HeadDim), BlockTokens: int32(d.geo.BlockTokens),
	}
}

// part is one save job: n blocks of a closed run, starting at from. Its copy into the ring is nil
// until it has its place there.
type part struct {
	closed  int // in plan.closed
	from, n int64
	at, end int64 // in the ring
	copy    *cuda.GPUScatterArgs
}

// planSaves divides a closed run into jobs.
func (d *paged) planSaves(i int, c *closed) {
	all := int64(d.geo.KVHeads * (c.to - c.from))
	for from := int64(0); from < all; {
		n := min(all-from, d.saver.most())
		d.plan.saves = append(d.plan.saves, part{closed: i, from: from, n: n})
		from += n
	}
}

// address writes the addresses of a job whose place in the ring begins at at: head by head, or, if
// each block is copied separately, token block by token block. The KV heads of a token block are
// adjacent in DRAM, so the copy engine needs the page's translation once, not once per head.
func (d *paged) address(layer int, s *part, at, end int64) {
	c, heads, size := &d.plan.closed[s.closed], d.geo.KVHeads, d.geo.BlockBytes
	addresses, to := d.stage.Longs(int(2 * s.n))
	for i := range s.n {
		h, b := d.savedAt(s, i)
		addresses[i] = int64(c.pool) + c.slot(h, b, heads)*size
		addresses[s.n+i] = int64(d.saver.ring) + (at+i)*size
		d.saver.to(at+i, d.dram.Block(c.req.pages[b], layer*heads+h))
	}
	s.at, s.end = at, end
	s.copy = &cuda.GPUScatterArgs{
		Src: to, Dst: to + cuda.Ptr(8*s.n), Count: s.n, BlockBytes: size,
		CTAs: int32(min(s.n, RingCTAs)),
	}
}

// savedAt returns the KV head and the block of a job's i-th block.
func (d *paged) savedAt(s *part, i int64) (head, block int) {
	c, k := &d.plan.closed[s.closed], int(s.from+i)
	if d.saver.engine == "memcpy" {
		return k % d.geo.KVHeads, c.from + k/d.geo.KVHeads
	}
	return k / (c.to - c.from), c.from + k%(c.to-c.from)
}

// save copies a job's blocks to the ring and hands them to the saver. A job without a place in the
// ring first waits for space, and then uploads its addresses.
func (d *paged) save(layer int, s *part) {
	if s.copy == nil {
		start := time.Now()
		at, end, waited, err := d.saver.reserve(s.n)
		if err != nil {
			d.queue.Fail(err)
			return
		}
		if waited {
			d.counters.Saving += time.Since(start)
		}
		d.address(layer, s, at, end)
		d.stage.Send()
	}
	d.launch(s.copy)
	ready, err := d.saver.record(d.stream)
	d.queue.Fail(err)
	d.clock.mark(phaseSaveStall) // the copy, and the wait before it
	job, err := d.saver.submit(d.step.Index, layer, s.at, s.n, s.end, ready)
	d.queue.Fail(err)
	c := &d.plan.closed[s.closed]
	c.req.note(c.from, c.to, job)
	d.counters.Saved += s.n
}

// RingCTAs CTAs copy within HBM at full speed.
const RingCTAs = 264
