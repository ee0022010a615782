package kv

import "fmt"

// pool is a set of HBM slots of one block each under one eviction order. Some are reserved for
// metadata and prefill buffers.
type pool struct {
	slots    int    // all
	reserved int    // not for blocks
	used     int    // blocks resident
	idle     int    // their marks that can be evicted: more than one of a shared block
	numbered bool   // slots have numbers, which a device reads; else all are 0
	first    uint32 // of its first slot: the pools' numbers follow one another
	fresh    uint32 // slots at fresh and above were never handed out
	free     []uint32
	order    evictor
}

// acquire hands out a free slot; the caller has made room.
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

// release returns a slot.
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

// setSlot gives an entry a slot.
func (s *Seq) setSlot(at int, slot uint32) {
	if s.slots != nil {
		s.slots[at] = slot
	}
}

// hasFree says whether a block can be taken without eviction.
func (p *pool) hasFree() bool { return p.used+p.reserved < p.slots }
