package kv

import (
	"math"
	"math/bits"
)

// History is the selections of a group that can be asked for again. Where one is given, changes
// reach marks only when something reads them: until then an access looks up residency alone, a
// bit a block, as marks of long contexts are not in the processor's caches.
type History interface {
	// Turn returns the candidates that came and went at a turn. Read only, for good.
	Turn(t int) (came, dropped []uint16)
	// Span returns how many candidates there are; the first selection has so many, or more.
	Span() int
}

// past is what a group's marks lack: they are as of the request's step synced, and what came and
// went in its steps after it, up to the group's last, is in the history. Resident bits (Seq.here)
// lack nothing.
type past struct {
	history History // nil: marks have all
	turn    int     // at the last step
	began   uint32  // step of the first selection
	synced  uint32
	sinks   int32
	end     int32 // of the candidates
}

// defers says whether the marks of a cache may wait: its evictor reads them in scans, and a miss
// is no more than its block.
func (cfg *Config) defers() bool {
	return cfg.Eviction == LRU && !cfg.Addressed && cfg.Do == nil && cfg.Trace == nil &&
		cfg.Microbatch == 0 && cfg.Window <= Lookback+1
}

// start notes the history of a group's selections, if those after this one can wait: if no
// candidate is held.
func (c *Cache) start(s *Seq, gs *groupState, sel *Selection) {
	gs.past = past{}
	if !c.defers || sel.All || sel.History == nil {
		return
	}
	if n := sel.Sinks + sel.History.Span(); n <= min(s.saved, sel.Tail) {
		gs.past = past{history: sel.History, turn: sel.Turn, began: s.step,
			synced: s.step, sinks: int32(sel.Sinks), end: int32(n)}
	}
}

// again counts blocks by the steps since their last use: lane i of 16 bits those of i+2 steps.
type again struct {
	lanes [3]uint64
	sum   int // of all lanes, or more
}

// Lookback is the steps before one that lanes are of.
const Lookback = 13

// waits says whether a selection follows from the last of the group's history, and those that
// lanes tell of, too, and the group has lost none of their blocks. Where blocks are evicted all the
// time, marks are read all the time, and nothing waits.
func (c *Cache) waits(s *Seq, g int, sel *Selection) bool {
	gs := &s.groups[g]
	return gs.history != nil && gs.last == s.step-1 && !gs.parked && int(gs.seen) <= s.blocks &&
		!sel.All && sel.Follows && sel.History != nil && s.hold == 0 &&
		s.step-gs.began >= Lookback && s.step-gs.lost > Lookback
}

// advance applies a selection that waits, but to marks of candidates and to blocks of the window.
func (c *Cache) advance(s *Seq, g int, sel *Selection) {
	gs := &s.groups[g]
	came, dropped := len(sel.Came), len(sel.Dropped)
	x := &s.again
	if x.sum += came; x.sum > math.MaxUint16 {
		s.settleAgain(c)
		x.sum = came
	}
	for i, n := range sel.Again {
		x.lanes[i] += n
	}
	missing := c.own.lack(s.hereOf(g), sel.Old, sel.Sinks)
	for _, b := range missing {
		c.missing = append(c.missing, ref{s.id, s.step, uint16(g), b})
	}
	c.pools[c.poolOf[g]].idle += dropped - (came - len(missing))
	s.active += came - dropped
	if gs.last+uint32(c.window) > s.step {
		s.recent[gs.last&c.ring] += int32(dropped)
	}
	selected := sel.Sinks + len(sel.Next) + s.blocks - sel.Tail
	c.stats.Selected += int64(selected - (len(sel.Next) - sel.Used))
	gs.last, gs.seen, gs.chosen, gs.turn = s.step, int32(s.blocks), int32(selected), sel.Turn
}

// lack returns those of the candidates whose blocks are not resident.
func (sh *share) lack(here []uint64, candidates []uint16, sinks int) []uint16 {
	if len(sh.lost) <= len(candidates) {
		sh.lost = make([]uint16, 2*len(candidates)+64)
	}
	lost, n := sh.lost, 0
	for _, b := range candidates {
		b += uint16(sinks)
		lost[n] = b
		n += int(^here[b/64] >> (b % 64) & 1)
	}
	return lost[:n]
}

// settleAgain takes what lanes count, of this step, from the counts of recent blocks.
func (s *Seq) settleAgain(c *Cache) {
	x := &s.again
	if x.sum == 0 {
		return
	}
	for gap := uint32(2); gap < uint32(c.window); gap++ {
		i := gap - 2
		s.recent[(s.step-gap)&c.ring] -= int32(x.lanes[i/4] >> (i % 4 * 16) & math.MaxUint16)
	}
	*x = again{}
}

// sync gives a group's marks what they lack.
func (c *Cache) sync(s *Seq, g int) {
	gs := &s.groups[g]
	if gs.history == nil || gs.synced == gs.last {
		return
	}
	s.apply(g, s.row(g))
	gs.synced = gs.last
}

// apply gives a row what the group's marks lack. What came is resident, unless its slot is to come.
func (s *Seq) apply(g int, row []mark) {
	gs := &s.groups[g]
	if gs.history == nil {
		return
	}
	row, here := row[gs.sinks:], s.hereOf(g)
	for u := gs.synced + 1; u <= gs.last; u++ {
		came, dropped := gs.history.Turn(gs.turn - int(gs.last-u))
		for _, b := range dropped {
			row[b] = row[b]&resident | mark(u-1)
		}
		for _, b := range came {
			at := int(b) + int(gs.sinks)
			row[b] = active | mark(here[at/64]>>(at%64)&1)*resident
		}
	}
}

// hereOf returns the bits of a group's blocks that are resident.
func (s *Seq) hereOf(g int) []uint64 { return s.here[g*s.words : (g+1)*s.words] }

// resident says whether an entry has a slot.
func (s *Seq) resident(g, b int) bool {
	if s.here == nil {
		return s.marks[g*s.cap+b].resident()
	}
	return s.here[g*s.words+b/64]>>(b%64)&1 != 0
}

// arrive gives an entry a slot. Its mark may lack that it came.
func (s *Seq) arrive(g, b int) {
	if s.here != nil {
		s.here[g*s.words+b/64] |= 1 << (b % 64)
		if gs := &s.groups[g]; gs.synced != gs.last && b < int(gs.end) {
			return
		}
	}
	s.marks[g*s.cap+b] |= resident
}

// depart takes an entry, whose mark lacks nothing, out of its slot.
func (s *Seq) depart(g, b int) {
	s.marks[g*s.cap+b] &^= resident
	if s.here != nil {
		s.here[g*s.words+b/64] &^= 1 << (b % 64)
		s.groups[g].lost = s.step
	}
}

// count returns how many blocks of a group are resident, and how many of them are idle: neither
// selected nor, as those that are not saved may be, held.
func (s *Seq) count(g int) (n, idle int) {
	for _, w := range s.hereOf(g) {
		n += bits.OnesCount64(w)
	}
	idle = n
	if gs := &s.groups[g]; gs.last >= s.born && !gs.parked {
		idle -= int(gs.chosen)
	}
	for b, m := range s.row(g)[s.saved:s.blocks] {
		if m&(held|active) == held && s.resident(g, s.saved+b) {
			idle--
		}
	}
	return n, idle
}
