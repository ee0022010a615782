package kv

import "fmt"

// Extend sets the number of tokens of a request's KV. New blocks get their slots when the step
// runs each layer (Write, Access).
func (c *shape) Extend(s *Seq, tokens int) {
	s.blocks = c.Geo.Blocks(tokens)
	s.full = tokens / c.Geo.BlockTokens
}

// Pin keeps all existing blocks of a request in HBM during its chunked prefill, except the first
// but blocks. Every chunk attends to all earlier chunks.
func (s *Seq) Pin(but int) { s.loose, s.hold = but, s.blocks }

// Unpin ends or suspends a chunked prefill. Saved blocks become evictable. They count as used
// now, although no decode step selected them.
func (c *Cache) Unpin(s *Seq) {
	n := s.hold
	s.hold, s.loose = 0, 0
	c.settle(s, 0, min(n, s.saved))
}

// Saved records that the first blocks of every group have been saved to DRAM.
func (c *Cache) Saved(s *Seq, blocks int) {
	if blocks <= s.saved {
		return
	}
	from := max(s.saved, s.hold)
	s.saved = blocks
	c.settle(s, from, blocks)
}

// settle clears the held flag of blocks [from, to) in all groups.
func (c *Cache) settle(s *Seq, from, to int) {
	if from >= to {
		return
	}
	for i := range c.layers {
		c.layers[i].version++
	}
	for g := range s.groups {
		row := s.row(g)
		for b := from; b < to; b++ {
			m := row[b]
			if m&held == 0 {
				continue
			}
			m &^= held
			s.held--
			c.held--
			if m.idle() {
				c.pools[c.poolOf[g]].idle++
				if m.when() < s.born {
					m = resident | mark(s.born-1) // never selected
					s.released = c.step
				}
			}
			row[b] = m
		}
	}
}

// Write queues blocks of one layer for slots: the new blocks of a running chunked prefill, the
// open block of a layer-segmented prefill, and pinned blocks that were evicted while the
// prefill was suspended. Fill assigns the slots. A block that another request has in HBM gets
// that slot at once. This evicts nothing, so it cannot take a block that the layer's decodes
// select.
func (c *Cache) Write(l *Layer, s *Seq) {
	for g := l.From; g < l.To; g++ {
		c.create(s, g)
		s.sync(g)
		row := s.row(g)
		for b := s.loose; b < s.hold; b++ {
			if row[b]&held != 0 {
				continue
			}
			if row[b].idle() {
				c.pools[c.poolOf[g]].idle--
			}
			row[b] |= held
			s.held++
			c.held++
			if !row[b].resident() {
				c.stats.Resumed++
				r := queued{ref{s.id, 0, uint16(g), uint16(b)}, -1, false}
				if !c.attachNow(l, r) {
					c.missing = append(c.missing, r)
				}
			}
		}
	}
}

// create queues the group's new blocks for slots. The model writes these blocks; they are held
// until they are saved.
func (c *Cache) create(s *Seq, g int) {
	gs := &s.groups[g]
	if int(gs.blocks) >= s.blocks {
		return
	}
	row := s.row(g)
	for b := int(gs.blocks); b < s.blocks; b++ {
		row[b] |= held
		s.held++
		c.held++
		c.writing = append(c.writing, queued{ref{s.id, 0, uint16(g), uint16(b)}, -1, false})
	}
	gs.blocks = int32(s.blocks)
}

// Segmented ends a layer-segmented prefill. Its full blocks were saved to DRAM layer by layer
// and have no slots. An open block gets a slot in every group.
func (c *Cache) Segmented(s *Seq) error {
	for g := range s.groups {
		s.groups[g].blocks = int32(s.full)
	}
	s.saved = s.full
	for _, l := range c.layers {
		c.Write(l, s)
		if _, err := c.Fill(l); err != nil {
			return err
		}
	}
	return nil
}

// Reserve sets the HBM bytes of a request's metadata and prefill buffers, for the whole model,
// and evicts blocks if needed. If too many blocks are in use, it returns an error and changes
// nothing.
func (c *Cache) Reserve(s *Seq, bytes int64) error {
	if bytes < 0 {
		return fmt.Errorf("kv: %d bytes to reserve for request %d", bytes, s.id)
	}
	delta := bytes - s.reserved
	if delta == 0 {
		return nil
	}
	if err := c.setReserved(c.reserved + delta); err != nil {
		return err
	}
	s.reserved = bytes
	return nil
}

func (c *Cache) setReserved(bytes int64) error {
	each := c.reservedSlots(bytes)
	for i := range c.pools {
		p := &c.pools[i]
		p.reserved = each
		for p.used+p.reserved > p.slots {
			if err := c.evict(i, nil); err != nil {
				c.reserve()
				return err
			}
		}
	}
	c.reserved = bytes
	return nil
}

// reservedSlots converts reserved bytes of the whole model to slots per pool.
func (c *shape) reservedSlots(bytes int64) int {
	slots := float64(bytes) / float64(c.Geo.BlockBytes) * c.Sample.Rate / float64(len(c.pools))
	n := int(slots)
	if float64(n) < slots {
		n++
	}
	return n
}

// reserve sets the reserved slots of every pool.
func (c *Cache) reserve() {
	for i := range c.pools {
		c.pools[i].reserved = c.reservedSlots(c.reserved)
	}
}
