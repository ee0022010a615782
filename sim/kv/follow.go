package kv

import "slices"

// follow applies a selection by its changes from the last. Loops over marks have no dependences and
// no unpredictable branches, so that cache misses overlap.
func (c *Cache) follow(s *Seq, g int, row []mark, sel *Selection) {
	if int(s.groups[g].seen) < s.blocks {
		c.slide(s, g, row, sel)
	}
	row = row[sel.Sinks:]
	c.deactivate(s, g, row, sel)
	for _, j := range c.activate(s, g, row, sel) {
		i := int(sel.Added[j])
		c.miss(s, g, sel.Sinks+int(sel.Came[j]))
		c.inRound(s, sel, i)
	}
}

// deactivate sets the last use of a selection's dropped candidates.
func (c *shape) deactivate(s *Seq, g int, row []mark, sel *Selection) {
	last := s.groups[g].last
	idle := 0
	for _, b := range sel.Dropped {
		m := row[b] & (held | resident)
		row[b] = m | mark(last)
		idle += m.free()
	}
	c.poolAt(g).idle += idle
	s.active -= len(sel.Dropped)
	if last+uint32(c.window) > s.step {
		s.recent[last&c.ring] += int32(len(sel.Dropped))
	}
}

// activate activates the added candidates of a selection and returns the positions in Came of
// candidates to load.
func (c *Cache) activate(s *Seq, g int, row []mark, sel *Selection) []uint16 {
	lost, recent := c.room(len(sel.Came)), s.recent[:c.ring+1]
	before := s.step - min(uint32(c.window), s.step-s.born+1) // its window
	s.active += len(sel.Came)
	n, idle := 0, 0
	for j, b := range sel.Came {
		m := row[b]
		if m&active != 0 { // it was in the window
			s.active--
			continue
		}
		recent[uint32(m)&uint32(len(recent)-1)] -= int32((before - m.when()) >> 31) // 1 if after it
		m &= held | resident
		row[b] = m | active
		idle += m.free()
		lost[n] = uint16(j)
		n += m.none()
	}
	c.poolAt(g).idle -= idle
	return lost[:n]
}

// free and none take a mark without flags other than held and resident. They are branch-free:
// subtracting 1 underflows only at 0.

// free is 1 for a block that is evictable unless active, else 0.
func (m mark) free() int { return int(((m ^ resident) - 1) >> 31) }

// none is 1 for a block that has no slot and waits for none, so it must be loaded, else 0.
func (m mark) none() int { return int((m - 1) >> 31) }

// slide updates the blocks that leave and enter a selection's window because the request has
// grown.
func (c *Cache) slide(s *Seq, g int, row []mark, sel *Selection) {
	seen := int(s.groups[g].seen)
	for b := max(sel.Sinks, seen-(s.blocks-sel.Tail)); b < sel.Tail; b++ {
		if row[b]&active != 0 && !slices.Contains(sel.Next, uint16(b-sel.Sinks)) {
			c.drop(s, g, row, b)
		}
	}
	for b := max(sel.Tail, seen); b < s.blocks; b++ {
		c.touch(s, g, &row[b], b)
	}
}
