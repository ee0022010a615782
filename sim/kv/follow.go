package kv

import "slices"

// follow applies a selection by its changes from the last. Marks are scattered in memory, so
// they are read first. Loops over marks have no dependences and no unpredictable branches, so
// that cache misses overlap.
func (c *Cache) follow(sh *share, s *Seq, g int, row []mark, sel *Selection) {
	if int(s.groups[g].seen) < s.blocks {
		c.slide(sh, s, g, row, sel)
	}
	row = row[sel.Sinks:]
	c.deactivate(sh, s, s.groups[g].last, row, sel)
	kept := sel.Sinks + s.blocks - sel.Tail
	for _, j := range c.activate(sh, s, row, sel) {
		i := int(sel.Added[j])
		at := sel.At + kept + i
		if i >= sel.Used {
			at = -1
		}
		c.miss(sh, s, g, sel.Sinks+int(sel.Came[j]), at)
		c.inRound(sh, s, sel, i)
	}
	if c.listed != nil {
		c.listAdded(s, g, row, sel)
	}
}

// deactivate sets the last use of a selection's dropped candidates.
func (c *Cache) deactivate(sh *share, s *Seq, last uint32, row []mark, sel *Selection) {
	sh.read += readAll(row, sel.Dropped) + readAll(row, sel.Came)
	idle := 0
	for _, b := range sel.Dropped {
		m := row[b] & (held | resident)
		row[b] = m | mark(last)
		idle += m.free()
	}
	sh.idle += idle
	sh.active -= len(sel.Dropped)
	if last+uint32(c.window) > s.step {
		sh.recent[last&c.ring] += int32(len(sel.Dropped))
	}
}

// activate activates the added candidates of a selection and returns the positions in Came of
// candidates to load.
func (c *Cache) activate(sh *share, s *Seq, row []mark, sel *Selection) []uint16 {
	if len(sh.lost) <= len(sel.Came) {
		sh.lost = make([]uint16, 2*len(sel.Came)+64)
	}
	lost, recent := sh.lost, sh.recent[:c.ring+1]
	before := s.step - min(uint32(c.window), s.step-s.born+1) // its window
	sh.active += len(sel.Came)
	n, idle := 0, 0
	for j, b := range sel.Came {
		m := row[b]
		if m&active != 0 { // it was in the window
			sh.active--
			continue
		}
		recent[uint32(m)&uint32(len(recent)-1)] -= int32((before - m.when()) >> 31) // 1 if after it
		m &= held | resident
		row[b] = m | active
		idle += m.free()
		lost[n] = uint16(j)
		n += m.none()
	}
	sh.idle -= idle
	return lost[:n]
}

func readAll(row []mark, blocks []uint16) (read uint32) {
	for _, b := range blocks {
		read += uint32(row[b])
	}
	return read
}

// free and none take a mark without flags other than held and resident. They are branch-free:
// subtracting 1 underflows only at 0.

// free is 1 for a block that is evictable unless active, else 0.
func (m mark) free() int { return int(((m ^ resident) - 1) >> 31) }

// none is 1 for a block that has no slot and waits for none, so it must be loaded, else 0.
func (m mark) none() int { return int((m - 1) >> 31) }

// slide updates the blocks that leave and enter a selection's window because the request has
// grown.
func (c *Cache) slide(sh *share, s *Seq, g int, row []mark, sel *Selection) {
	seen := int(s.groups[g].seen)
	for b := max(sel.Sinks, seen-(s.blocks-sel.Tail)); b < sel.Tail; b++ {
		if row[b]&active != 0 && !slices.Contains(sel.Next, uint16(b-sel.Sinks)) {
			c.drop(sh, s, g, row, b)
		}
	}
	for b := max(sel.Tail, seen); b < s.blocks; b++ {
		c.touch(sh, s, g, &row[b], b, sel.At+sel.Sinks+b-sel.Tail)
	}
}

// listAdded lists the slots of added candidates that are resident.
func (c *Cache) listAdded(s *Seq, g int, row []mark, sel *Selection) {
	at := sel.At + sel.Sinks + s.blocks - sel.Tail
	for _, i := range sel.Added {
		if b := int(sel.Next[i]); row[b].resident() && int(i) < sel.Used {
			c.list(s, g, sel.Sinks+b, at+int(i))
		}
	}
}
