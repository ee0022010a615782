package kv

import (
	"fmt"
	"slices"
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
		if s.live && s.active > 0 && !contains(decodes, s) {
			c.leaving = append(c.leaving, s)
		}
	}
	for i := range c.pools {
		c.pools[i].order.tidy(c, c.pools[i].slots)
	}
}

func contains(xs []*Seq, x *Seq) bool {
	for _, y := range xs {
		if x == y {
			return true
		}
	}
	return false
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
	SideBySide(len(seqs), func(i int) {
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
	for i := range sel.Next {
		c.touchAt(sh, s, g, row, sel, i)
	}
	for b := sel.Tail; b < s.blocks; b++ {
		c.touch(sh, s, g, row, b)
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
