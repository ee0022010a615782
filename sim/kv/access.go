package kv

import "slices"

// Selection is the blocks that one group attends to in one step: the first Sinks blocks, the
// blocks from Tail on, and the picks between: block = Sinks + index.
type Selection struct {
	Picks
	Sinks, Tail int
	All         bool // every block is selected

	// History is the repeatable trace of this selection and the selections that follow, or nil.
	// The fields after it are valid only with a history:
	History History
	Turn    int        // turn of this selection; increases by one per step
	Again   *[3]uint64 // counts of Came by reuse distance, as in again
	Old     []uint16   // the candidates of Came with a longer reuse distance
}

// BeginStep starts a step that decodes the given requests. The blocks of requests that were in
// the last step but not in this one become evictable, layer by layer when Fill reaches the
// layer.
func (c *Cache) BeginStep(decodes []*Seq) {
	c.step++
	for _, s := range decodes {
		s.settleAgain(&c.shape)
		s.step++
		s.stepAt = append(s.stepAt, c.step)
		s.recent[(s.step-uint32(c.window))&c.ring] = 0
	}
	if c.trace != nil {
		c.trace.begin(c, decodes)
	}
	c.absent = c.absent[:0]
	for _, s := range c.seqs {
		if s.live && s.active > 0 && !slices.Contains(decodes, s) {
			c.absent = append(c.absent, s)
		}
	}
	for i := range c.pools {
		c.pools[i].order.tidy(c, c.pools[i].slots)
	}
}

// Access applies one group's selection in the current step. Misses wait for Fill, so that all
// hits of a layer are in use before anything is evicted.
func (c *Cache) Access(s *Seq, g int, sel *Selection) {
	if c.trace != nil {
		c.trace.access(s, g, sel)
	}
	waits := s.waits(g, sel)
	if waits && int(s.groups[g].seen) == s.blocks { // true in most steps
		c.advance(s, g, sel)
		return
	}
	c.create(s, g)
	if waits {
		c.slide(s, g, s.row(g), sel)
		c.advance(s, g, sel)
	} else {
		c.access(s, g, sel)
	}
}

// queued is a block that waits for a slot, and when progressive attention needs it.
type queued struct {
	ref
	round int32 // microbatch; -1: the first, for non-candidates
	ahead bool  // loaded, but not attended to
}

func (c *Cache) access(s *Seq, g int, sel *Selection) {
	gs := &s.groups[g]
	row := s.row(g)
	next := sel.Sinks + len(sel.Next) + s.blocks - sel.Tail
	if sel.All {
		next = s.blocks
	}
	c.stats.Selected += int64(next)
	if !sel.All {
		c.stats.Selected -= int64(len(sel.Next) - sel.Used)
	}
	follows := gs.last == s.step-1 && !gs.parked && int(gs.seen) <= s.blocks
	switch {
	case follows && gs.all && sel.All && int(gs.seen) == s.blocks:
	case follows && !gs.all && !sel.All && sel.Follows:
		s.sync(g)
		c.follow(s, g, row, sel)
		gs.synced = s.step
	default:
		s.sync(g)
		c.rebuild(s, g, row, sel)
		s.start(gs, sel)
	}
	gs.turn = sel.Turn
	gs.last, gs.seen, gs.all, gs.parked = s.step, int32(s.blocks), sel.All, false
	gs.chosen = int32(next)
}

// rebuild applies a selection whose changes are unknown, in list order: sinks, window,
// candidates.
func (c *Cache) rebuild(s *Seq, g int, row []mark, sel *Selection) {
	if gs := &s.groups[g]; !gs.parked && gs.last >= s.born {
		c.dropUnwanted(s, g, row, sel)
	}
	if sel.All {
		for b := range s.blocks {
			c.touch(s, g, &row[b], b)
		}
		return
	}
	for b := range sel.Sinks {
		c.touch(s, g, &row[b], b)
	}
	for b := sel.Tail; b < s.blocks; b++ {
		c.touch(s, g, &row[b], b)
	}
	row = row[sel.Sinks:]
	for i, b := range sel.Next {
		if c.touch(s, g, &row[b], sel.Sinks+int(b)) {
			c.inRound(s, sel, i)
		}
	}
}

// dropUnwanted drops the active blocks of a group that are not in a selection.
func (c *Cache) dropUnwanted(s *Seq, g int, row []mark, sel *Selection) {
	if sel.All {
		return
	}
	words := (s.blocks + 63) / 64
	if cap(c.chosen) < words {
		c.chosen = make([]uint64, 2*words)
	}
	want := c.chosen[:words]
	clear(want)
	for _, i := range sel.Next {
		b := sel.Sinks + int(i)
		want[b/64] |= 1 << (b % 64)
	}
	for b := sel.Sinks; b < sel.Tail; b++ {
		if row[b]&active != 0 && want[b/64]&(1<<(b%64)) == 0 {
			c.drop(s, g, row, b)
		}
	}
}

// inRound records which microbatch loads the i-th candidate, which must be the newest missing
// block.
func (c *filling) inRound(s *Seq, sel *Selection, i int) {
	if c.microbatch == 0 {
		return
	}
	r := (sel.Sinks + s.blocks - sel.Tail + i) / c.microbatch
	for len(c.rounds) <= r {
		c.rounds = append(c.rounds, 0)
	}
	c.rounds[r]++
	q := &c.missing[len(c.missing)-1]
	if q.round, q.ahead = int32(r), i >= sel.Used; q.ahead {
		c.stats.Ahead++
	}
}

// touch activates a block and reports whether it must be loaded.
func (c *Cache) touch(s *Seq, g int, p *mark, b int) bool {
	m := *p
	if m&active != 0 {
		return false
	}
	if was := m.when(); was >= s.born && was+uint32(c.window) > s.step {
		s.recent[was&c.ring]--
	}
	if m.idle() {
		c.poolAt(g).idle--
	}
	*p = m&(held|resident) | active
	s.active++
	if m.resident() || m&held != 0 { // a held block's slot is pending
		return false
	}
	c.miss(s, g, b)
	return true
}

// miss queues a block for loading.
func (c *filling) miss(s *Seq, g, b int) {
	c.missing = append(c.missing, queued{ref{s.id, s.step, uint16(g), uint16(b)}, -1, false})
}

// drop deselects a block. Its last use is the group's last access.
func (c *shape) drop(s *Seq, g int, row []mark, b int) {
	last := s.groups[g].last
	m := row[b]&(held|resident) | mark(last)
	row[b] = m
	if m.idle() {
		c.poolAt(g).idle++
	}
	s.active--
	if last+uint32(c.window) > s.step {
		s.recent[last&c.ring]++
	}
}

// park makes a group's active blocks evictable before its next access, because the request is
// not in the batch or the pool has no idle blocks.
func (c *Cache) park(s *Seq, g int) {
	gs := &s.groups[g]
	if gs.parked || gs.last < s.born || s.active == 0 {
		return
	}
	s.sync(g)
	gs.parked = true
	row := s.row(g)
	for b := range row[:s.blocks] {
		if row[b]&active != 0 {
			c.drop(s, g, row, b)
		}
	}
}
