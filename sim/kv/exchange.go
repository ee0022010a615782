package kv

import (
	"slices"
	"time"
)

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
	fresh := true // nobody has written yet which blocks wait
	for len(waiting) > 0 && (l.next < len(l.victims) || l.scan(c, -1)) {
		from := l.victims[l.next:min(l.next+len(waiting), len(l.victims))]
		l.next += len(from)
		more := l.victims[l.next:min(l.next+l.stale, len(l.victims))]
		l.nowIdle.Store(0)
		l.gone.Store(0)
		c.exchangeRound(l, refs, names, from, more, waiting, first, fresh)
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
		l.stale = used + used/4 + exchangeShare
		c.exchangePairs(l, refs, names, more)
		evicted := l.gone.Load() + int64(len(l.pairs))
		p.idle += int(l.nowIdle.Load() - evicted)
		if l.nowIdle.Load() > 0 {
			c.layers[li].version++
		}
		c.stats.Evicted += evicted
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

// startWaiting writes which blocks wait, the first of them from, the last before
// to. Those that are loaded are still where accesses have left them.
func (c *Cache) startWaiting(names []BlockRef, waiting []int32, first, from, to int) {
	if names != nil {
		c.fetch(first+from, first+to)
	}
	for k := from; k < to; k++ {
		waiting[k] = int32(first + k)
	}
}

// exchangeRound has each waiting block try its victim, and looks at more victims.
func (c *Cache) exchangeRound(l *lru, refs []ref, names []BlockRef, from, more []ref, waiting []int32, first int, fresh bool) {
	l.spare = slices.Grow(l.spare[:0], len(more))[:len(more)]
	begin := len(from) // of more
	if fresh {
		begin = len(waiting)
	}
	n := begin + len(more)
	SideBySide((n+exchangeShare-1)/exchangeShare, time.Duration(exchangeShare)*exchangeTime, func(share int) {
		j, end := share*exchangeShare, min((share+1)*exchangeShare, n)
		if end > begin {
			k := max(0, j-begin)
			c.look(more[k:end-begin], l.spare[k:])
		}
		if end = min(end, begin); j >= end {
			return
		}
		if fresh {
			c.startWaiting(names, waiting, first, j, end)
		}
		idle, given := c.exchangeSome(refs, names, from[min(j, len(from)):min(end, len(from))], waiting[j:end])
		if idle > 0 {
			l.nowIdle.Add(idle)
		}
		l.gone.Add(given)
	})
}

// exchangePairs gives waiting blocks the slots of the spare victims with which
// they are paired.
func (c *Cache) exchangePairs(l *lru, refs []ref, names []BlockRef, more []ref) {
	SideBySide((len(l.pairs)+exchangeShare-1)/exchangeShare, time.Duration(exchangeShare)*exchangeTime, func(share int) {
		idle := int64(0)
		for _, x := range l.pairs[share*exchangeShare : min((share+1)*exchangeShare, len(l.pairs))] {
			if c.seat(refs, names, int(x.waiting), c.vacate(more[x.spare])) {
				idle++
			}
		}
		if idle > 0 {
			l.nowIdle.Add(idle)
		}
	})
	if c.tables {
		for _, x := range l.pairs {
			c.noteGone(more[x.spare], l.spare[x.spare].slot)
		}
	}
}

// pair pairs waiting blocks with spare victims as further rounds would,
// as far as those suffice for whole rounds. It returns the blocks that still wait
// and how many victims it used.
func (l *lru) pair(waiting []int32) (left []int32, used int) {
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
