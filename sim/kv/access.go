package kv

import (
	"slices"
	"time"
)

// Selection is what one group attends to in one step: Sinks first blocks, the
// last blocks from Tail on, and of the candidates between them the listed ones.
type Selection struct {
	Sinks, Tail int
	Next        []uint16 // candidate indices: block = Sinks + index
	Used        int      // the first Used are attended to, the others only loaded
	// Where it is known how the selection follows from that of the step before:
	Follows bool
	Added   []uint16 // positions in Next of candidates that were not in it
	Dropped []uint16 // candidates that were and no longer are
	All     bool     // every block is selected
}

// BeginStep starts a step that decodes the given requests. Requests decoded in
// the step before and absent now become evictable, layer by layer as Fill
// reaches the layer.
func (c *Cache) BeginStep(decodes []*Seq) {
	c.step++
	for _, s := range decodes {
		s.step++
		s.clock = append(s.clock, c.step)
		s.recent[int(s.step)%c.window] = 0
	}
	if c.trace != nil {
		c.trace.begin(c, decodes)
	}
	c.leaving = c.leaving[:0]
	for _, s := range c.seqs {
		if s.live && s.active > 0 && !slices.Contains(decodes, s) {
			c.leaving = append(c.leaving, s)
		}
	}
	for i := range c.pools {
		c.pools[i].order.tidy(c, c.pools[i].slots)
	}
}

// Access applies one group's selection in the current step. Misses wait for
// Fill, so that all of a layer's hits are in use before anything is evicted.
func (c *Cache) Access(s *Seq, g int, sel *Selection) {
	if c.trace != nil {
		c.trace.access(s, g, sel)
	}
	c.create(s, g)
	c.access(&c.own, s, g, sel)
	c.merge(&c.own, c.poolOf[g])
}

// share is what accesses leave in the cache beside their request: requests that
// are accessed side by side each fill one, and these are merged in order.
type share struct {
	missing  []ref
	wanted   []int32 // with detail: the round of each of missing
	idle     int     // change of the pool's idle blocks
	selected int64
	rounds   []int64  // of missing, by microbatch beyond sinks and window
	ahead    int64    // of missing, those that are not attended to
	want     []uint64 // scratch
}

func (c *Cache) merge(sh *share, pool int) {
	c.missing = append(c.missing, sh.missing...)
	c.wanted = append(c.wanted, sh.wanted...)
	c.pools[pool].idle += sh.idle
	c.stats.Selected += sh.selected
	c.stats.Ahead += sh.ahead
	for len(c.rounds) < len(sh.rounds) {
		c.rounds = append(c.rounds, 0)
	}
	for i, n := range sh.rounds {
		c.rounds[i] += n
	}
	sh.rounds, sh.ahead = sh.rounds[:0], 0
	sh.missing, sh.wanted, sh.idle, sh.selected = sh.missing[:0], sh.wanted[:0], 0, 0
}

// accessTime is what the access of one group takes, with what its selection is
// made of and listed to, about.
const accessTime = 700 * time.Nanosecond

// AccessLayer applies the selections of all groups of a sampled layer for
// several different requests: selection writes that of the i-th one in group g,
// and is called from several goroutines at once. The outcome is that of Access
// for one after the other.
func (c *Cache) AccessLayer(li int, seqs []*Seq, selection func(i, g int, sel *Selection)) {
	l := &c.layers[li]
	for len(c.shares) < len(seqs) {
		c.shares = append(c.shares, share{})
	}
	for _, s := range seqs {
		for g := l.from; g < l.to; g++ {
			c.create(s, g)
		}
	}
	SideBySide(len(seqs), time.Duration(l.to-l.from)*accessTime, func(i int) {
		var sel Selection
		sh := c.shares[i] // apart from its neighbours in the caches of the cores
		for g := l.from; g < l.to; g++ {
			selection(i, g, &sel)
			c.access(&sh, seqs[i], g, &sel)
		}
		c.shares[i] = sh
	})
	for i := range seqs {
		c.merge(&c.shares[i], l.pool)
	}
}

func (c *Cache) access(sh *share, s *Seq, g int, sel *Selection) {
	gs := &s.groups[g]
	row := s.row(g)
	next := sel.Sinks + len(sel.Next) + s.blocks - sel.Tail
	if sel.All {
		next = s.blocks
	}
	sh.selected += int64(next)
	if !sel.All {
		sh.selected -= int64(len(sel.Next) - sel.Used)
	}
	follows := gs.last == s.step-1 && !gs.parked && int(gs.seen) == s.blocks
	switch {
	case follows && gs.all && sel.All:
	case follows && !gs.all && !sel.All && sel.Follows:
		for _, b := range sel.Dropped {
			c.drop(sh, s, g, row, sel.Sinks+int(b))
		}
		for _, i := range sel.Added {
			c.touchAt(sh, s, g, row, sel, int(i))
		}
	default:
		c.rebuild(sh, s, g, row, sel)
	}
	gs.last, gs.seen, gs.all, gs.parked = s.step, int32(s.blocks), sel.All, false
}

// rebuild applies a selection without knowing how it differs from the last.
// Sinks, window, then candidates: the order in which lists name them.
func (c *Cache) rebuild(sh *share, s *Seq, g int, row []mark, sel *Selection) {
	if gs := &s.groups[g]; !gs.parked && gs.last >= s.born {
		c.dropUnwanted(sh, s, g, row, sel)
	}
	if sel.All {
		for b := range s.blocks {
			c.touch(sh, s, g, row, b)
		}
		return
	}
	for b := range sel.Sinks {
		c.touch(sh, s, g, row, b)
	}
	for b := sel.Tail; b < s.blocks; b++ {
		c.touch(sh, s, g, row, b)
	}
	for i := range sel.Next {
		c.touchAt(sh, s, g, row, sel, i)
	}
}

// dropUnwanted drops the active blocks of a group that a selection leaves out.
func (c *Cache) dropUnwanted(sh *share, s *Seq, g int, row []mark, sel *Selection) {
	if sel.All {
		return
	}
	words := (s.blocks + 63) / 64
	if cap(sh.want) < words {
		sh.want = make([]uint64, 2*words)
	}
	want := sh.want[:words]
	clear(want)
	for _, i := range sel.Next {
		b := sel.Sinks + int(i)
		want[b/64] |= 1 << (b % 64)
	}
	for b := sel.Sinks; b < sel.Tail; b++ {
		if row[b]&active != 0 && want[b/64]&(1<<(b%64)) == 0 {
			c.drop(sh, s, g, row, b)
		}
	}
}

// touchAt makes the i-th candidate of a selection active and notes in which
// microbatch it is loaded if it must be.
func (c *Cache) touchAt(sh *share, s *Seq, g int, row []mark, sel *Selection, i int) {
	if !c.touch(sh, s, g, row, sel.Sinks+int(sel.Next[i])) || c.microbatch == 0 {
		return
	}
	r := (sel.Sinks + s.blocks - sel.Tail + i) / c.microbatch
	for len(sh.rounds) <= r {
		sh.rounds = append(sh.rounds, 0)
	}
	sh.rounds[r]++
	if c.detail {
		sh.wanted[len(sh.wanted)-1] = int32(r)
	}
	if i >= sel.Used {
		sh.ahead++
	}
}

// touch makes a block active and says whether it must be loaded.
func (c *Cache) touch(sh *share, s *Seq, g int, row []mark, b int) bool {
	m := row[b]
	if m&active != 0 {
		return false
	}
	if was := m.when(); was >= s.born && was+uint32(c.window) > s.step {
		s.recent[int(was)%c.window]--
	}
	if m.idle() {
		sh.idle--
	}
	row[b] = m&(held|resident) | active
	s.active++
	if m&(held|resident) != 0 {
		return false
	}
	sh.missing = append(sh.missing, ref{s.id, s.step, uint16(g), uint16(b)})
	if c.detail {
		sh.wanted = append(sh.wanted, 0)
	}
	return true
}

// drop ends a block's run of selections; its last use was the group's last
// access.
func (c *Cache) drop(sh *share, s *Seq, g int, row []mark, b int) {
	last := s.groups[g].last
	m := row[b]&(held|resident) | mark(last)
	row[b] = m
	if m.idle() {
		sh.idle++
	}
	s.active--
	if last+uint32(c.window) > s.step {
		s.recent[int(last)%c.window]++
	}
}

// park makes a group's active blocks evictable though no access has replaced
// them: the request left the batch, or the pool ran out of idle blocks.
func (c *Cache) park(s *Seq, g int) {
	gs := &s.groups[g]
	if gs.parked || gs.last < s.born || s.active == 0 {
		return
	}
	gs.parked = true
	row := s.row(g)
	for b := range row[:s.blocks] {
		if row[b]&active != 0 {
			c.drop(&c.own, s, g, row, b)
		}
	}
	c.merge(&c.own, c.poolOf[g])
}
