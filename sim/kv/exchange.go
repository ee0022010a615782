package kv

import (
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
)

// exchangeTime is the approximate cost of one exchange.
const exchangeTime = 60 * des.Nanosecond

// exchange is the state of an LRU pool that evicts and places many blocks at once, in parts
// that may run concurrently.
type exchange struct {
	stale int           // extra victims to examine: slightly more than the last exchange used
	spare []spareVictim // the examined extra victims
	pairs []pairedSpare
	count []exchanged // by part
}

// spareVictim is a victim examined ahead of its turn.
type spareVictim struct {
	slot      uint32
	evictable bool
}

// pairedSpare is a waiting block and the spare victim whose slot it takes.
type pairedSpare struct{ waiting, spare int32 }

// exchanged counts a part's evicted victims and its blocks that were idle when placed.
type exchanged struct{ gone, idle int }

// exchange gives blocks, from the first-th on, the slots of victims. It returns the blocks for
// which no victim remains. Each block has one victim; if the victim was touched after it was
// collected, the block retries with the next victim. The result equals the serial result.
func (c *Cache) exchange(at *Layer, l *lru, refs []ref, names []BlockRef,
	first int) (left []int32) {
	p := &c.pools[at.pool]
	waiting := slices.Grow(c.waiting[:0], len(refs)-first)[:len(refs)-first]
	fresh := true // waiting has not been written yet
	for len(waiting) > 0 && (l.next < len(l.victims) || l.scan(c, nil)) {
		from := l.victims[l.next:min(l.next+len(waiting), len(l.victims))]
		l.next += len(from)
		more := l.victims[l.next:min(l.next+l.stale, len(l.victims))]
		done := c.exchangeRound(l, refs, names, from, more, waiting, first, fresh)
		fresh = false
		if c.tables {
			for j, r := range from {
				if k := waiting[j]; k < 0 {
					c.noteGone(r, c.slotOf(refs[^k]))
				}
			}
		}
		var used int
		waiting, used = l.pair(stillWaiting(waiting))
		l.next += used
		l.stale = used + used/4 + c.exchangeShare
		spare := c.exchangePairs(l, refs, names, more)
		gone, idle := done.gone+spare.gone, done.idle+spare.idle
		p.idle += idle - gone
		if idle > 0 {
			at.version++
		}
		c.stats.Evicted += int64(gone)
	}
	if fresh {
		c.startWaiting(names, waiting, first, 0, len(waiting))
	}
	if names != nil {
		c.fetched()
	}
	c.waiting = waiting
	return waiting
}

// inParts calls f for ranges that cover 0 to n-1 and adds up the results.
func (c *Cache) inParts(l *lru, n int, f func(from, to int) exchanged) (sum exchanged) {
	size := c.exchangeShare
	parts := (n + size - 1) / size
	l.count = slices.Grow(l.count[:0], parts)[:parts]
	c.do(parts, des.Time(size)*exchangeTime,
		func(i int) { l.count[i] = f(i*size, min((i+1)*size, n)) })
	for _, x := range l.count {
		sum.gone += x.gone
		sum.idle += x.idle
	}
	return sum
}

// startWaiting initialises the waiting list in [from, to). Missing blocks are still in the
// parts of their Split and are copied here.
func (c *Cache) startWaiting(names []BlockRef, waiting []int32, first, from, to int) {
	if names != nil {
		c.fetch(first+from, first+to)
	}
	for k := from; k < to; k++ {
		waiting[k] = int32(first + k)
	}
}

// exchangeRound tries one victim per waiting block, and examines the extra victims in more.
func (c *Cache) exchangeRound(l *lru, refs []ref, names []BlockRef, from, more []ref,
	waiting []int32, first int, fresh bool) exchanged {
	l.spare = slices.Grow(l.spare[:0], len(more))[:len(more)]
	begin := len(from) // of more
	if fresh {
		begin = len(waiting)
	}
	return c.inParts(l, begin+len(more), func(j, end int) exchanged {
		if end > begin {
			k := max(0, j-begin)
			c.examine(more[k:end-begin], l.spare[k:])
		}
		if end = min(end, begin); j >= end {
			return exchanged{}
		}
		if fresh {
			c.startWaiting(names, waiting, first, j, end)
		}
		return c.exchangeSome(refs, names, from[min(j, len(from)):min(end, len(from))], waiting[j:end])
	})
}

// exchangePairs gives waiting blocks the slots of their paired spare victims.
func (c *Cache) exchangePairs(l *lru, refs []ref, names []BlockRef, more []ref) exchanged {
	sum := c.inParts(l, len(l.pairs), func(from, to int) (n exchanged) {
		for _, x := range l.pairs[from:to] {
			n.gone++
			if c.seat(refs, names, int(x.waiting), c.vacate(more[x.spare])) {
				n.idle++
			}
		}
		return n
	})
	if c.tables {
		for _, x := range l.pairs {
			c.noteGone(more[x.spare], l.spare[x.spare].slot)
		}
	}
	return sum
}

// pair pairs waiting blocks with spare victims as further rounds would, as long as the spares
// suffice for a whole round. It returns the blocks that still wait and the number of victims
// used.
func (l *lru) pair(waiting []int32) (left []int32, used int) {
	l.pairs = l.pairs[:0]
	for len(waiting) > 0 && used+len(waiting) <= len(l.spare) {
		round, k := len(waiting), 0
		for j, w := range waiting {
			if l.spare[used+j].evictable {
				l.pairs = append(l.pairs, pairedSpare{w, int32(used + j)})
			} else {
				waiting[k] = w
				k++
			}
		}
		waiting, used = waiting[:k], used+round
	}
	return waiting, used
}

// stillWaiting removes the entries that exchangeSome complemented. It is branch-free because
// their positions are unpredictable.
func stillWaiting(waiting []int32) []int32 {
	k := 0
	for _, w := range waiting {
		waiting[k] = w
		k += 1 - int(uint32(w)>>31)
	}
	return waiting[:k]
}

// examine determines which victims are evictable, and their slots.
func (c *Cache) examine(from []ref, spare []spareVictim) {
	for j, r := range from {
		spare[j] = spareVictim{}
		s := c.seqs[r.seq]
		if at := int(r.group)*s.cap + int(r.block); s.live && int(r.block) < s.blocks {
			m := s.marks[at]
			spare[j] = spareVictim{s.slot(at), m.idle() && m.when() == r.stamp}
		}
	}
}

// exchangeSome gives each waiting block the slot of its victim if the victim is evictable, and
// then complements the block's entry. It examines several victims at a time so that cache
// misses overlap.
func (c *Cache) exchangeSome(refs []ref, names []BlockRef, from []ref, waiting []int32) (
	n exchanged) {
	var was [16]spareVictim
	for len(from) > 0 {
		k := min(len(from), len(was))
		c.examine(from[:k], was[:])
		for j, r := range from[:k] {
			if !was[j].evictable {
				continue
			}
			c.vacate(r)
			if c.seat(refs, names, int(waiting[j]), was[j].slot) {
				n.idle++
			}
			n.gone++
			waiting[j] = ^waiting[j]
		}
		from, waiting = from[k:], waiting[k:]
	}
	return n
}
