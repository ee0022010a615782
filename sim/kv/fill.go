package kv

import (
	"fmt"
	"slices"
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
	n := len(c.missing)
	c.refs = slices.Grow(c.refs[:0], n)[:n]
	for i, r := range c.missing {
		at := &c.starts[c.wanted[i]]
		c.refs[*at] = BlockRef{r.seq, c.Sample.Groups[r.group], int32(r.block), c.seqs[r.seq].Slots(int(r.group))[r.block], c.wanted[i]}
		*at++
	}
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
	for _, r := range refs {
		for !p.room() {
			if err := c.evict(c.layers[li].pool, li); err != nil {
				return err
			}
		}
		s := c.seqs[r.seq]
		i := int(r.group)*s.cap + int(r.block)
		s.slots[i] = p.take()
		s.marks[i] |= resident
		if s.marks[i].idle() {
			p.idle++ // parked while it waited
			c.layers[li].version++
		}
		r.stamp = s.step
		p.order.entered(c, r)
	}
	return nil
}

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
			s := c.seqs[r.seq]
			i := int(r.group)*s.cap + int(r.block)
			p.give(s.slots[i])
			s.marks[i] &^= resident
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
