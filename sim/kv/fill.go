package kv

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Fill gives slots to what Write and Access queued in a sampled layer, evicting
// as needed, and returns the number of blocks to load over its groups.
func (c *Cache) Fill(li int) (loads int64, err error) {
	l := &c.layers[li]
	l.version++
	for _, s := range c.leaving {
		for g := l.from; g < l.to; g++ {
			c.park(s, g)
		}
	}
	loads = int64(len(c.missing))
	c.filled = append(c.filled[:0], c.rounds...)
	c.rounds = c.rounds[:0]
	for i := range c.missing {
		c.loads[c.missing[i].group]++
	}
	if err = c.place(li, c.writing); err == nil {
		err = c.place(li, c.missing)
	}
	if c.detail && err == nil {
		c.name()
	}
	c.stats.Written += int64(len(c.writing))
	c.stats.Loaded += loads
	c.writing, c.missing, c.wanted = c.writing[:0], c.missing[:0], c.wanted[:0]
	return loads, err
}

// name lists what is missing, in the order of the rounds that need it and
// within a round as it was asked for.
func (c *Cache) name() {
	n := len(c.missing)
	c.refs = slices.Grow(c.refs[:0], n)[:n]
	if c.microbatch == 0 {
		const share = 512
		SideBySide((n+share-1)/share, func(i int) {
			for j := i * share; j < min((i+1)*share, n); j++ {
				c.refs[j] = c.named(j)
			}
		})
		return
	}
	c.starts = c.starts[:0]
	for _, r := range c.wanted {
		for len(c.starts) <= int(r)+1 {
			c.starts = append(c.starts, 0)
		}
		c.starts[r+1]++
	}
	for r := 1; r < len(c.starts); r++ {
		c.starts[r] += c.starts[r-1]
	}
	for i := range c.missing {
		at := &c.starts[c.wanted[i]]
		c.refs[*at] = c.named(i)
		*at++
	}
}

// named names the i-th of the missing blocks, which has its slot.
func (c *Cache) named(i int) BlockRef {
	r := c.missing[i]
	return BlockRef{r.seq, c.Sample.Groups[r.group], int32(r.block), c.seqs[r.seq].Slots(int(r.group))[r.block], c.wanted[i]}
}

// Refs names the blocks that the last Fill loads, each once, until the next
// Fill. Only a cache made with Detail keeps them.
func (c *Cache) Refs() []BlockRef { return c.refs }

// Rounds returns how many of the blocks that the last Fill loads belong to each
// microbatch of a progressive attention, as far as they are candidates; all
// others are needed from the first on. Valid until the next Fill.
func (c *Cache) Rounds() []int64 { return c.filled }

func (c *Cache) place(li int, refs []ref) error {
	p := &c.pools[c.layers[li].pool]
	for i := 0; i < len(refs); i++ {
		if l, ok := p.order.(*lru); ok && c.detail && !p.room() {
			if i += c.exchange(li, l, refs[i:]); i == len(refs) {
				break
			}
		}
		r := refs[i]
		for !p.room() {
			if err := c.evict(c.layers[li].pool, li); err != nil {
				return err
			}
		}
		if c.seat(r, p.take()) {
			p.idle++
			c.layers[li].version++
		}
		r.stamp = c.seqs[r.seq].step
		p.order.entered(c, r)
	}
	return nil
}

// seat gives a block its slot and says whether it is idle at once: it was
// parked while it waited.
func (c *Cache) seat(r ref, slot uint32) (idle bool) {
	s := c.seqs[r.seq]
	i := int(r.group)*s.cap + int(r.block)
	s.slots[i] = slot
	s.marks[i] |= resident
	return s.marks[i].idle()
}

// vacate takes a block out of its slot.
func (c *Cache) vacate(r ref) (slot uint32) {
	s := c.seqs[r.seq]
	i := int(r.group)*s.cap + int(r.block)
	s.marks[i] &^= resident
	return s.slots[i]
}

// exchange gives many blocks the slots of victims, on all cores: marks and slots
// lie anywhere in memory, and waiting for them is what placing takes. It returns
// how many blocks have got one; for the others there are no victims yet. The
// outcome is that of one block after the other.
func (c *Cache) exchange(li int, l *lru, refs []ref) (placed int) {
	const share = 256 // blocks that are worth a core of their own
	p := &c.pools[c.layers[li].pool]
	for placed < len(refs) && (l.next < len(l.victims) || l.scan(c, -1)) {
		from := l.victims[l.next:min(l.next+len(refs)-placed, len(l.victims))]
		l.next += len(from)
		c.given = slices.Grow(c.given[:0], len(from))[:len(from)]
		SideBySide((len(from)+share-1)/share, func(i int) {
			for j := i * share; j < min((i+1)*share, len(from)); j++ {
				c.given[j] = noSlot
				if l.evictable(c, from[j]) {
					c.given[j] = c.vacate(from[j])
				}
			}
		})
		c.given = slices.DeleteFunc(c.given, func(slot uint32) bool { return slot == noSlot })
		to := refs[placed:][:len(c.given)]
		var idle atomic.Int64
		SideBySide((len(to)+share-1)/share, func(i int) {
			for j := i * share; j < min((i+1)*share, len(to)); j++ {
				if c.seat(to[j], c.given[j]) {
					idle.Add(1)
				}
			}
		})
		p.idle += int(idle.Load()) - len(to)
		if idle.Load() > 0 {
			c.layers[li].version++
		}
		c.stats.Evicted += int64(len(to))
		placed += len(to)
	}
	return placed
}

// noSlot is no slot's number.
const noSlot = ^uint32(0)

// evict frees one slot of a pool while sampled layer li is being accessed
// (-1: between steps). When no block is idle it parks the layers whose turn
// in this step is yet to come, and then those it has passed: the order in
// which their blocks were last used. Progressive attention may in the end evict
// what an earlier round of the layer itself has attended to; with Detail it may
// not, since a device runs the layer's rounds over one set of slots.
func (c *Cache) evict(pool, li int) error {
	p := &c.pools[pool]
	only := -1
	for i := 0; ; i++ {
		if r, ok := p.order.victim(c, only); ok {
			p.give(c.vacate(r))
			p.idle--
			c.stats.Evicted++
			return nil
		}
		last := i == len(c.layers)
		if last && (c.microbatch == 0 || c.detail || li < 0) || i > len(c.layers) {
			break
		}
		other := (li + 1 + i) % len(c.layers)
		if last {
			other = li
		} else if other == li || c.layers[other].pool != pool {
			continue
		}
		only = other
		c.layers[other].version++
		for _, s := range c.seqs {
			if s.live {
				for g := c.layers[other].from; g < c.layers[other].to; g++ {
					c.park(s, g)
				}
			}
		}
	}
	if c.microbatch > 0 && c.detail && li >= 0 {
		return fmt.Errorf("kv: layer %d attends to more blocks than HBM holds at once: %d slots, %d of them reserved for metadata and prefill buffers, %d needed; a device that computes cannot give the slots of one round to the next; give it more (system.kv_gib), or run fewer requests at once (system.max_requests)",
			c.layers[li].layer, p.slots, p.reserved, p.used+c.unplaced(pool))
	}
	return fmt.Errorf("kv: HBM is full of blocks in use: %d slots, %d of them reserved for metadata and prefill buffers, %d held or selected; give it more (system.kv_gib), or run fewer requests at once (system.max_requests)",
		p.slots, p.reserved, p.used)
}

// unplaced is how many queued blocks of a pool have no slot yet.
func (c *Cache) unplaced(pool int) (n int) {
	for _, refs := range [][]ref{c.writing, c.missing} {
		for _, r := range refs {
			if c.poolOf[r.group] == pool && !c.seqs[r.seq].marks[int(r.group)*c.seqs[r.seq].cap+int(r.block)].resident() {
				n++
			}
		}
	}
	return n
}
