package kv

import "fmt"

// pool is a set of HBM slots under one eviction order. A slot holds one block. Some slots are
// reserved for metadata and prefill buffers.
type pool struct {
	slots    int    // all
	reserved int    // not available for blocks
	used     int    // blocks resident
	idle     int    // evictable marks; a shared block may have several
	numbered bool   // slots have numbers that a device reads; otherwise all are 0
	first    uint32 // number of its first slot; pools have consecutive ranges
	fresh    uint32 // slots at fresh and above were never handed out
	free     []uint32
	order    evictor
}

// poolAt returns the pool of a group of the sample.
func (c *shape) poolAt(g int) *pool { return &c.pools[c.poolOf[g]] }

// acquire takes a free slot; the caller has made room.
func (p *pool) acquire() uint32 {
	if p.used+p.reserved >= p.slots {
		panic(fmt.Sprintf("kv: no free slot: %d used + %d reserved of %d", p.used, p.reserved, p.slots))
	}
	p.used++
	if !p.numbered {
		return 0
	}
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		return s
	}
	s := p.fresh
	p.fresh++
	return s
}

// release frees a slot.
func (p *pool) release(slot uint32) {
	p.used--
	if p.numbered {
		p.free = append(p.free, slot)
	}
}

// slot returns the slot of an entry.
func (s *Seq) slot(at int) uint32 {
	if s.slots == nil {
		return 0
	}
	return s.slots[at]
}

// setSlot sets the slot of an entry.
func (s *Seq) setSlot(at int, slot uint32) {
	if s.slots != nil {
		s.slots[at] = slot
	}
}

// hasFree reports whether a slot is free, so that no eviction is needed.
func (p *pool) hasFree() bool { return p.used+p.reserved < p.slots }

// named returns the name of a block in a slot.
func (c *shape) named(r ref, slot uint32) BlockRef {
	return BlockRef{Seq: r.seq, Group: c.Sample.Groups[r.group], Block: int32(r.block), Slot: slot}
}
