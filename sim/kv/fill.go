package kv

import (
	"fmt"
	"slices"
)

// Fill assigns slots to the blocks that Write and Access queued in a sampled layer, and evicts
// as needed. It returns the number of blocks to load over the layer's groups.
func (c *Cache) Fill(l *Layer) (loads int64, err error) {
	l.version++
	for _, s := range c.absent {
		for g := l.From; g < l.To; g++ {
			c.park(s, g)
		}
	}
	c.goneBefore = len(c.gone)
	sharing := c.shares.live > 0
	if sharing {
		c.join(l)
	}
	if c.addressed {
		c.refs = slices.Grow(c.refs[:0], len(c.missing))[:len(c.missing)]
	}
	if err = c.place(l, c.writing, nil); err == nil {
		err = c.place(l, c.missing, c.refs)
	}
	if err == nil && sharing {
		err = c.joinAfter(l)
	}
	loads = int64(len(c.missing))
	c.filled = append(c.filled[:0], c.rounds...)
	c.rounds = c.rounds[:0]
	if c.Sample.Rate < 1 {
		for i := range c.missing {
			c.loads[c.missing[i].group]++
		}
	}
	if c.tables {
		for _, r := range c.writing {
			c.seated = append(c.seated, c.named(r.ref, c.slotOf(r.ref)))
		}
	}
	if c.addressed && c.microbatch > 0 && err == nil {
		c.sortRefs()
	}
	c.stats.Written += int64(len(c.writing))
	c.stats.Loaded += loads
	c.writing, c.missing = c.writing[:0], c.missing[:0]
	return loads, err
}

// sortRefs sorts missing blocks by the round that needs them, stably.
func (c *filling) sortRefs() {
	next := c.starts[:0] // where the next block of each round goes
	for i := range c.refs {
		for len(next) <= int(c.refs[i].Round) {
			next = append(next, 0)
		}
		next[c.refs[i].Round]++
	}
	at := 0
	for r, n := range next {
		next[r], at = at, at+n
	}
	c.starts = next
	c.sorted = slices.Grow(c.sorted[:0], len(c.refs))[:len(c.refs)]
	for i := range c.refs {
		r := c.refs[i].Round
		c.sorted[next[r]] = c.refs[i]
		next[r]++
	}
	c.refs, c.sorted = c.sorted, c.refs
}

// Refs returns the blocks that the last Fill loads, without repeats. Valid until the next Fill.
// The cache must be Addressed.
func (c *filling) Refs() []BlockRef { return c.refs }

// Rounds returns the number of candidates that the last Fill loads, by microbatch of
// progressive attention. All other loads are needed from the first microbatch on. Valid until
// the next Fill.
func (c *filling) Rounds() []int64 { return c.filled }

// place assigns slots to blocks, and writes their names if names is not nil.
func (c *Cache) place(l *Layer, refs []queued, names []BlockRef) error {
	for i := range refs {
		if err := c.placeOne(l, refs, names, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cache) placeOne(l *Layer, refs []queued, names []BlockRef, i int) error {
	p := &c.pools[l.pool]
	for !p.hasFree() {
		if err := c.evict(l.pool, l); err != nil {
			return err
		}
	}
	if c.seat(refs, names, i, p.acquire()) {
		p.idle++
		l.version++
	}
	r := refs[i].ref
	r.stamp = c.seqs[r.seq].step
	p.order.entered(c, r)
	return nil
}

// seat assigns a slot to the i-th block and reports whether the block is idle at once, because
// its group was parked while it waited.
func (c *Cache) seat(refs []queued, names []BlockRef, i int, slot uint32) (idle bool) {
	r := &refs[i]
	s := c.seqs[r.seq]
	at := int(r.group)*s.cap + int(r.block)
	s.setSlot(at, slot)
	s.arrive(int(r.group), int(r.block))
	if e := s.sharedAt(int(r.block)); e >= 0 {
		c.shares.seat(e, int(r.group), slot)
	}
	if len(names) > 0 {
		names[i] = c.named(r.ref, slot)
		names[i].Round = max(0, r.round)
	}
	// Read the mark, a likely cache miss, only if the block can be idle.
	return s.groups[r.group].parked && s.marks[at].idle()
}

// slotOf returns a block's current or last slot.
func (c *requests) slotOf(r ref) uint32 {
	s := c.seqs[r.seq]
	return s.slots[int(r.group)*s.cap+int(r.block)]
}

// vacate removes a block from its slot.
func (c *requests) vacate(r ref) (slot uint32) {
	s := c.seqs[r.seq]
	s.depart(int(r.group), int(r.block))
	return s.slot(int(r.group)*s.cap + int(r.block))
}

// evict frees one slot of a pool while a layer is accessed (nil: between steps). If no block is
// idle, it parks the layers that the step has not reached yet, and then the layers that it has
// passed; this is the order of last use. As a last resort progressive attention evicts blocks
// that an earlier round of the same layer attended to. An addressed cache does not, because a
// device runs all rounds of the layer over one set of slots.
func (c *Cache) evict(pool int, l *Layer) error {
	p := &c.pools[pool]
	at := -1
	if l != nil {
		at = l.index
	}
	var only *Layer
	for i := 0; ; i++ {
		for {
			r, ok := p.order.victim(c, only)
			if !ok {
				break
			}
			slot := c.vacate(r)
			if c.tables {
				c.gone = append(c.gone, c.named(r, slot))
			}
			p.idle--
			if c.shares.unref(c.seqs[r.seq], int(r.group), int(r.block)) {
				p.release(slot)
				c.stats.Evicted++
				return nil
			}
		}
		last := i == len(c.layers)
		if last && (c.microbatch == 0 || c.addressed || l == nil) || i > len(c.layers) {
			break
		}
		other := c.layers[(at+1+i)%len(c.layers)]
		if last {
			other = l
		} else if other == l || other.pool != pool {
			continue
		}
		only = other
		other.version++
		for _, s := range c.seqs {
			if s.live {
				for g := other.From; g < other.To; g++ {
					c.park(s, g)
				}
			}
		}
	}
	const remedy = "give it more (system.kv_gib), or run fewer requests at once (system.max_requests)"
	if c.microbatch > 0 && c.addressed && l != nil {
		return fmt.Errorf("kv: layer %d attends to more blocks than HBM holds at once: "+
			"%d slots, %d reserved for metadata and prefill buffers, %d needed; "+
			"a device that computes cannot give the slots of one round to the next; "+remedy,
			l.Number, p.slots, p.reserved, p.used+c.unplaced(pool))
	}
	return fmt.Errorf("kv: HBM is full of blocks in use: %d slots, "+
		"%d reserved for metadata and prefill buffers, %d held or selected; "+remedy,
		p.slots, p.reserved, p.used)
}

// unplaced is the number of queued blocks of a pool without a slot.
func (c *Cache) unplaced(pool int) (n int) {
	for _, refs := range [][]queued{c.writing, c.missing} {
		for _, r := range refs {
			if c.poolOf[r.group] == pool &&
				!c.seqs[r.seq].resident(int(r.group), int(r.block)) {
				n++
			}
		}
	}
	return n
}
