package kv

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"
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
	c.goneBefore = len(c.gone)
	loads = int64(len(c.missing))
	c.filled = append(c.filled[:0], c.rounds...)
	c.rounds = c.rounds[:0]
	if c.detail {
		c.refs = slices.Grow(c.refs[:0], len(c.missing))[:len(c.missing)]
	}
	if err = c.place(li, c.writing, nil); err == nil {
		err = c.place(li, c.missing, c.refs)
	}
	if c.Sample.Rate < 1 {
		for i := range c.missing {
			c.loads[c.missing[i].group]++
		}
	}
	c.listed = nil
	if c.tables {
		c.noteSeated()
	}
	if c.detail && c.microbatch > 0 && err == nil {
		c.sortRefs()
	}
	c.stats.Written += int64(len(c.writing))
	c.stats.Loaded += loads
	c.writing, c.missing, c.wanted = c.writing[:0], c.missing[:0], c.wanted[:0]
	return loads, err
}

// sortRefs puts what is missing in the order of the rounds that need it, and
// within a round as it was asked for.
func (c *Cache) sortRefs() {
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

// Refs names the blocks that the last Fill loads, each once, until the next
// Fill. Only a cache made with Detail keeps them.
func (c *Cache) Refs() []BlockRef { return c.refs }

// Rounds returns how many of the blocks that the last Fill loads belong to each
// microbatch of a progressive attention, as far as they are candidates; all
// others are needed from the first on. Valid until the next Fill.
func (c *Cache) Rounds() []int64 { return c.filled }

// place gives blocks their slots, and names them in names when a device is to
// know.
func (c *Cache) place(li int, refs []ref, names []BlockRef) error {
	p := &c.pools[c.layers[li].pool]
	l, many := p.order.(*lru)
	many = many && c.detail
	fetched := len(c.unmerged) == 0 || names == nil
	for i := range refs {
		if many && !p.room() && len(refs)-i > exchangeShare {
			for _, j := range c.exchange(li, l, refs, names, i) {
				if err := c.placeOne(li, refs, names, int(j)); err != nil {
					return err
				}
			}
			return nil
		}
		if !fetched {
			fetched = true
			c.fetch(0, len(refs))
			c.fetched()
		}
		if err := c.placeOne(li, refs, names, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cache) placeOne(li int, refs []ref, names []BlockRef, i int) error {
	p := &c.pools[c.layers[li].pool]
	for !p.room() {
		if err := c.evict(c.layers[li].pool, li); err != nil {
			return err
		}
	}
	if c.seat(refs, names, i, p.take()) {
		p.idle++
		c.layers[li].version++
	}
	r := refs[i]
	r.stamp = c.seqs[r.seq].step
	p.order.entered(c, r)
	return nil
}

// seat gives the i-th block its slot and says whether it is idle at once: it was
// parked while it waited.
func (c *Cache) seat(refs []ref, names []BlockRef, i int, slot uint32) (idle bool) {
	r := refs[i]
	s := c.seqs[r.seq]
	at := int(r.group)*s.cap + int(r.block)
	s.slots[at] = slot
	s.marks[at] |= resident
	if len(names) > 0 {
		w := &c.wanted[i]
		names[i] = BlockRef{r.seq, c.Sample.Groups[r.group], int32(r.block), slot, w.round}
		if c.listed != nil && w.at >= 0 {
			c.listed[w.at] = int32(slot)
		}
	}
	return s.marks[at].idle()
}

// slotOf returns the slot that a block has, or had last.
func (c *Cache) slotOf(r ref) uint32 {
	s := c.seqs[r.seq]
	return s.slots[int(r.group)*s.cap+int(r.block)]
}

// vacate takes a block out of its slot.
func (c *Cache) vacate(r ref) (slot uint32) {
	s := c.seqs[r.seq]
	i := int(r.group)*s.cap + int(r.block)
	s.marks[i] &^= resident
	return s.slots[i]
}

// exchangeShare is how many exchanges are worth a core of their own. Tests make
// it small.
var exchangeShare = 64

// exchangeTime is what an exchange takes, about.
const exchangeTime = 60 * time.Nanosecond

// spareVictim is a victim beyond those that each block has, looked at already.
type spareVictim struct {
	slot uint32
	goes bool
}

// exchanged is a waiting block and the spare victim whose slot it gets.
type exchanged struct{ waiting, spare int32 }

// exchange gives blocks, from the i-th on, the slots of victims, on all cores:
// marks and slots lie anywhere in memory, and waiting for them is what placing
// takes. Each block has a victim; those whose victim is no longer idle come to
// the next victims, round by round. It returns the blocks for which there is none.
// The victims are those of one block after the other.
func (c *Cache) exchange(li int, l *lru, refs []ref, names []BlockRef, first int) (left []int32) {
	p := &c.pools[c.layers[li].pool]
	waiting := slices.Grow(c.waiting[:0], len(refs)-first)[:len(refs)-first]
	fresh := true         // nobody has written which blocks wait
	fetch := names != nil // they are still where accesses have left them
	for len(waiting) > 0 && (l.next < len(l.victims) || l.scan(c, -1)) {
		from := l.victims[l.next:min(l.next+len(waiting), len(l.victims))]
		l.next += len(from)
		more := l.victims[l.next:min(l.next+l.stale, len(l.victims))]
		l.spare = slices.Grow(l.spare[:0], len(more))[:len(more)]
		begin := len(from) // of more
		if fresh {
			begin = len(waiting)
		}
		total := begin + len(more)
		var idle, gone atomic.Int64
		SideBySide((total+exchangeShare-1)/exchangeShare, time.Duration(exchangeShare)*exchangeTime, func(share int) {
			j, end := share*exchangeShare, min((share+1)*exchangeShare, total)
			if end > begin {
				k := max(0, j-begin)
				c.look(more[k:end-begin], l.spare[k:])
			}
			if end = min(end, begin); j >= end {
				return
			}
			if fresh {
				if fetch {
					c.fetch(first+j, first+end)
				}
				for k := j; k < end; k++ {
					waiting[k] = int32(first + k)
				}
			}
			newIdle, given := c.exchangeSome(refs, names, from[min(j, len(from)):min(end, len(from))], waiting[j:end])
			if newIdle > 0 {
				idle.Add(newIdle)
			}
			gone.Add(given)
		})
		if fresh && fetch {
			c.fetched()
		}
		fresh = false
		if c.tables {
			for j, r := range from {
				if k := waiting[j]; k < 0 {
					c.gone = append(c.gone, BlockRef{Seq: r.seq, Group: c.Sample.Groups[r.group], Block: int32(r.block), Slot: c.slotOf(refs[^k])})
				}
			}
		}
		waiting = stillWaiting(waiting)
		var used int
		waiting, used = l.exchangeSpare(waiting)
		l.next += used
		l.stale = used + used/4 + exchangeShare
		SideBySide((len(l.pairs)+exchangeShare-1)/exchangeShare, time.Duration(exchangeShare)*exchangeTime, func(share int) {
			newIdle := int64(0)
			for _, x := range l.pairs[share*exchangeShare : min((share+1)*exchangeShare, len(l.pairs))] {
				if c.seat(refs, names, int(x.waiting), c.vacate(more[x.spare])) {
					newIdle++
				}
			}
			if newIdle > 0 {
				idle.Add(newIdle)
			}
		})
		if c.tables {
			for _, x := range l.pairs {
				r := more[x.spare]
				c.gone = append(c.gone, BlockRef{Seq: r.seq, Group: c.Sample.Groups[r.group], Block: int32(r.block), Slot: l.spare[x.spare].slot})
			}
		}
		evicted := gone.Load() + int64(len(l.pairs))
		p.idle += int(idle.Load() - evicted)
		if idle.Load() > 0 {
			c.layers[li].version++
		}
		c.stats.Evicted += evicted
	}
	if fresh {
		if fetch {
			c.fetch(first, len(refs))
			c.fetched()
		}
		for k := range waiting {
			waiting[k] = int32(first + k)
		}
	}
	c.waiting = waiting
	return waiting
}

// exchangeSpare pairs waiting blocks with spare victims as further rounds would,
// as far as those suffice for whole rounds. It returns the blocks that still wait
// and how many victims it used.
func (l *lru) exchangeSpare(waiting []int32) (left []int32, used int) {
	l.pairs = l.pairs[:0]
	for len(waiting) > 0 && used+len(waiting) <= len(l.spare) {
		round, k := len(waiting), 0
		for j, w := range waiting {
			if l.spare[used+j].goes {
				l.pairs = append(l.pairs, exchanged{w, int32(used + j)})
			} else {
				waiting[k] = w
				k++
			}
		}
		waiting, used = waiting[:k], used+round
	}
	return waiting, used
}

// stillWaiting drops the entries that exchangeSome has complemented. It does not
// branch on them: they are in no order.
func stillWaiting(waiting []int32) []int32 {
	k := 0
	for _, w := range waiting {
		waiting[k] = w
		k += 1 - int(uint32(w)>>31)
	}
	return waiting[:k]
}

// look finds which victims can go, and their slots.
func (c *Cache) look(from []ref, spare []spareVictim) {
	for j, r := range from {
		spare[j] = spareVictim{}
		s := c.seqs[r.seq]
		if at := int(r.group)*s.cap + int(r.block); s.live && int(r.block) < s.blocks {
			m := s.marks[at]
			spare[j] = spareVictim{s.slots[at], m.idle() && m.when() == r.stamp}
		}
	}
}

// exchangeSome gives each waiting block the slot of its victim, if that can go,
// and then complements its entry. What it needs of memory it reads in loops that
// wait for none, so that many reads are under way together.
func (c *Cache) exchangeSome(refs []ref, names []BlockRef, from []ref, waiting []int32) (idle, given int64) {
	var was [16]spareVictim
	for len(from) > 0 {
		n := min(len(from), len(was))
		c.look(from[:n], was[:])
		for j, r := range from[:n] {
			if !was[j].goes {
				continue
			}
			c.vacate(r)
			if c.seat(refs, names, int(waiting[j]), was[j].slot) {
				idle++
			}
			given++
			waiting[j] = ^waiting[j]
		}
		from, waiting = from[n:], waiting[n:]
	}
	return idle, given
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
			p.give(c.vacate(r))
			if c.tables {
				c.noteGone(r)
			}
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
