package kv

import (
	"math"
	"math/bits"
)

// History is the repeatable selection trace of a group. If a selection has one, the cache
// defers changes of marks until marks are read. Until then an access only looks up residency,
// one bit per block, because the marks of long contexts do not fit in CPU caches.
type History interface {
	// Turn returns the candidates selected and deselected at turn t. The slices are read only and
	// never change.
	Turn(t int) (came, dropped []uint16)
	// Span returns the number of candidates. The first selection has at least this many.
	Span() int
}

// past is the range of steps whose changes are not in a group's marks yet. Marks are valid as
// of the request's step synced. The history holds the changes of later steps, up to the group's
// last. Resident bits (Seq.here) are always up to date.
type past struct {
	history History // nil: nothing is deferred
	turn    int     // at the last step
	began   uint32  // step of the first selection
	synced  uint32
	sinks   int32
	end     int32 // of the candidates
}

// defers reports whether a cache may defer changes of marks: its evictor reads marks only in
// scans, and a miss needs no data except its block.
func (cfg *Config) defers() bool {
	return cfg.Eviction == LRU && !cfg.Addressed && cfg.Trace == nil &&
		cfg.Microbatch == 0 && cfg.Window <= Lookback+1
}

// start records the history of a group's selections if later selections can be deferred, which
// requires that no candidate is held.
func (s *Seq) start(gs *groupState, sel *Selection) {
	gs.past = past{}
	if s.here == nil || sel.All || sel.History == nil {
		return
	}
	if n := sel.Sinks + sel.History.Span(); n <= min(s.saved, sel.Tail) {
		gs.past = past{history: sel.History, turn: sel.Turn, began: s.step,
			synced: s.step, sinks: int32(sel.Sinks), end: int32(n)}
	}
}

// again counts re-selected blocks by reuse distance: 16-bit lane i counts blocks last used i+2
// steps ago.
type again struct {
	lanes [3]uint64
	sum   int // upper bound of the sum of all lanes
}

// Lookback is the largest reuse distance, in steps, that lanes count.
const Lookback = 13

// waits reports whether an access can be deferred: the selection follows the group's last one,
// the history covers the last Lookback steps, and no block of the group was evicted in them.
// Under constant eviction nothing is deferred, because every step reads marks.
func (s *Seq) waits(g int, sel *Selection) bool {
	gs := &s.groups[g]
	return gs.history != nil && gs.last == s.step-1 && !gs.parked && int(gs.seen) <= s.blocks &&
		!sel.All && sel.Follows && sel.History != nil && s.hold == 0 &&
		s.step-gs.began >= Lookback && s.step-gs.lost > Lookback
}

// advance applies a deferred selection. It updates neither marks of candidates nor blocks of
// the window.
func (c *Cache) advance(s *Seq, g int, sel *Selection) {
	gs := &s.groups[g]
	came, dropped := len(sel.Came), len(sel.Dropped)
	x := &s.again
	if x.sum += came; x.sum > math.MaxUint16 {
		s.settleAgain(&c.shape)
		x.sum = came
	}
	for i, n := range sel.Again {
		x.lanes[i] += n
	}
	missing := c.lack(s.hereOf(g), sel.Old, sel.Sinks)
	for _, b := range missing {
		c.miss(s, g, int(b))
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

// lack returns the candidates whose blocks are not resident.
func (c *filling) lack(here []uint64, candidates []uint16, sinks int) []uint16 {
	lost, n := c.room(len(candidates)), 0
	for _, b := range candidates {
		b += uint16(sinks)
		lost[n] = b
		n += int(^here[b/64] >> (b % 64) & 1)
	}
	return lost[:n]
}

// room returns memory for more than n changes.
func (f *filling) room(n int) []uint16 {
	if len(f.lost) <= n {
		f.lost = make([]uint16, 2*n+64)
	}
	return f.lost
}

// settleAgain subtracts the re-selections of this step, as counted in lanes, from the counts of
// recent blocks.
func (s *Seq) settleAgain(c *shape) {
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

// sync applies deferred changes to a group's marks.
func (s *Seq) sync(g int) {
	gs := &s.groups[g]
	if gs.history == nil || gs.synced == gs.last {
		return
	}
	s.apply(g, s.row(g))
	gs.synced = gs.last
}

// apply writes a group's deferred changes to a row of marks. A newly selected block is
// resident, unless it still waits for its slot.
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

// hereOf returns the resident bits of a group's blocks.
func (s *Seq) hereOf(g int) []uint64 { return s.here[g*s.words : (g+1)*s.words] }

// resident reports whether an entry has a slot.
func (s *Seq) resident(g, b int) bool {
	if s.here == nil {
		return s.marks[g*s.cap+b].resident()
	}
	return s.here[g*s.words+b/64]>>(b%64)&1 != 0
}

// arrive marks an entry resident. If the group has deferred changes, only the resident bit is
// set.
func (s *Seq) arrive(g, b int) {
	if s.here != nil {
		s.here[g*s.words+b/64] |= 1 << (b % 64)
		if gs := &s.groups[g]; gs.synced != gs.last && b < int(gs.end) {
			return
		}
	}
	s.marks[g*s.cap+b] |= resident
}

// depart clears an entry's residency. The entry's mark must be up to date.
func (s *Seq) depart(g, b int) {
	s.marks[g*s.cap+b] &^= resident
	if s.here != nil {
		s.here[g*s.words+b/64] &^= 1 << (b % 64)
		s.groups[g].lost = s.step
	}
}

// count returns the resident blocks of a group and how many are idle. Idle blocks are neither
// selected nor held; unsaved blocks may be held.
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
