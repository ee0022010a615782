package kv

// Requests whose prompts begin alike have blocks in common: the same tokens after the same
// tokens, so the same KV. Such a block is once in DRAM, and once in HBM: a request that misses a
// block which another has there takes its slot without a load. Each request keeps a mark of its
// own, which ages and is evicted by its own uses; the slot is free when the last mark leaves it.
// The content of a block whose requests have all been freed leaves HBM with them.

// shares are the blocks that several requests have, an entry a block of the whole model.
type shares struct {
	groups  int
	known   map[uint64]int32 // by key: an entry, or the complement of the only request's handle
	users   []int32          // by entry: requests
	holders []uint16         // [entry][groups]: marks that are resident, or coming
	slots   []uint32         // [entry][groups], where there are any
	free    []int32          // entries
	live    int              // entries that are not free

	after  []ref // misses of the Fill, of blocks that another of its misses loads
	wanted []want
}

// coming is the holders of a block that a running Fill loads.
const coming = ^uint16(0)

// Adopt has a new request begin with so many full blocks that are in DRAM: a prefix that other
// requests left there. None of them is in HBM for it until it is selected or pinned. Blocks of
// equal keys have equal content and the same place in their requests: the first of them, which
// have keys, are from now on shared with live requests that have the same.
func (c *Cache) Adopt(s *Seq, blocks int, keys []uint64) {
	s.blocks, s.full, s.saved = blocks, blocks, blocks
	for g := range s.groups {
		s.groups[g].blocks = int32(blocks)
	}
	c.name(s, keys, true)
}

// Name gives the first blocks of a request, those in DRAM, their keys, so that later requests may
// share them. Keys given before come again. Of a block that another request has under the same
// key, this one wrote a copy, which stays its own.
func (c *Cache) Name(s *Seq, keys []uint64) { c.name(s, keys, false) }

func (c *Cache) name(s *Seq, keys []uint64, adopted bool) {
	x := &c.shares
	if x.known == nil {
		x.known, x.groups = map[uint64]int32{}, len(c.Sample.Groups)
	}
	for b := len(s.keys); b < min(len(keys), s.saved); b++ {
		s.keys, s.shared = append(s.keys, keys[b]), append(s.shared, -1)
		at, known := x.known[keys[b]]
		switch {
		case !known:
			x.known[keys[b]] = ^s.id
		case !adopted:
		case at >= 0:
			x.users[at]++
			s.shared[b] = at
		default:
			owner := c.seqs[^at]
			at = x.open()
			owner.shared[b], s.shared[b], x.users[at], x.known[keys[b]] = at, at, 2, at
			for g := range x.groups {
				if owner.resident(g, b) {
					x.seat(at, g, owner.slot(g*owner.cap+b))
				}
			}
		}
	}
}

// open returns a free entry, without holders.
func (x *shares) open() int32 {
	x.live++
	if n := len(x.free); n > 0 {
		at := x.free[n-1]
		x.free = x.free[:n-1]
		return at
	}
	x.users = append(x.users, 0)
	for range x.groups {
		x.holders, x.slots = append(x.holders, 0), append(x.slots, 0)
	}
	return int32(len(x.users) - 1)
}

// seat makes a slot a block's, of one holder.
func (x *shares) seat(at int32, g int, slot uint32) {
	i := int(at)*x.groups + g
	x.holders[i], x.slots[i] = 1, slot
}

// sharedAt returns the entry of a request's block, -1 for none.
func (s *Seq) sharedAt(block int) int32 {
	if block < len(s.shared) {
		return s.shared[block]
	}
	return -1
}

// unref drops a request's reference to a slot and says whether it was the last.
func (c *Cache) unref(s *Seq, g, block int) (free bool) {
	at := s.sharedAt(block)
	if at < 0 {
		return true
	}
	n := &c.shares.holders[int(at)*c.shares.groups+g]
	*n--
	return *n == 0
}

// unname ends a request's part in its blocks, whose slots it has left.
func (c *Cache) unname(s *Seq) {
	x := &c.shares
	for b, key := range s.keys {
		at := s.shared[b]
		if at < 0 {
			if x.known[key] == ^s.id {
				delete(x.known, key)
			}
			continue
		}
		if x.users[at]--; x.users[at] == 0 {
			delete(x.known, key)
			x.free = append(x.free, at)
			x.live--
		}
	}
	s.keys, s.shared = s.keys[:0], s.shared[:0]
}

// join drops from a Fill's misses those whose blocks others have in HBM, and gives them these
// slots before anything is evicted. Of several that miss a block one loads it; the others wait.
func (c *Cache) join(l *Layer) {
	x := &c.shares
	if len(c.split.begin) > 0 {
		c.fetch(0, len(c.missing))
		c.fetched()
	}
	x.after, x.wanted = x.after[:0], x.wanted[:0]
	n := 0
	for i, r := range c.missing {
		var w want
		if c.wants {
			w = c.wanted[i]
		}
		if at := c.seqs[r.seq].sharedAt(int(r.block)); at >= 0 {
			switch h := &x.holders[int(at)*x.groups+int(r.group)]; *h {
			case 0:
				*h = coming
			case coming:
				x.after, x.wanted = append(x.after, r), append(x.wanted, w)
				continue
			default:
				c.attach(l, r, w)
				continue
			}
		}
		if c.missing[n] = r; c.wants {
			c.wanted[n] = w
		}
		n++
	}
	if c.missing = c.missing[:n]; c.wants {
		c.wanted = c.wanted[:n]
	}
}

// attachNow gives a missed block the slot that another request has it in, if one has.
func (c *Cache) attachNow(l *Layer, r ref) bool {
	x, at := &c.shares, c.seqs[r.seq].sharedAt(int(r.block))
	if at < 0 {
		return false
	}
	if h := x.holders[int(at)*x.groups+int(r.group)]; h == 0 || h == coming {
		return false
	}
	c.attach(l, r, want{round: -1, at: -1})
	return true
}

// joinAfter gives the misses that waited the slots of the blocks that the Fill has loaded.
func (c *Cache) joinAfter(l *Layer) error {
	x := &c.shares
	for i, r := range x.after {
		at := c.seqs[r.seq].sharedAt(int(r.block))
		if x.holders[int(at)*x.groups+int(r.group)] > 0 {
			c.attach(l, r, x.wanted[i])
			continue
		}
		// Progressive attention has evicted it again, in the same layer.
		c.missing = append(c.missing, r)
		if c.wants {
			c.wanted = append(c.wanted, x.wanted[i])
		}
		if c.addressed {
			c.refs = append(c.refs, BlockRef{})
		}
		if err := c.placeOne(l, c.missing, c.refs, len(c.missing)-1); err != nil {
			return err
		}
	}
	return nil
}

// attach gives a missed block the slot that another request has it in.
func (c *Cache) attach(l *Layer, r ref, w want) {
	x, s, p := &c.shares, c.seqs[r.seq], &c.pools[l.pool]
	i := int(s.shared[r.block])*x.groups + int(r.group)
	x.holders[i]++
	at := int(r.group)*s.cap + int(r.block)
	s.setSlot(at, x.slots[i])
	s.arrive(int(r.group), int(r.block))
	if c.listed != nil && w.at >= 0 {
		c.listed[w.at] = int32(x.slots[i])
	}
	if c.tables {
		c.noteSeat(r)
	}
	if s.groups[r.group].parked && s.marks[at].idle() { // parked while it waited
		p.idle++
		l.version++
	}
	switch {
	case r.stamp == 0:
		c.stats.Resumed--
	case c.wants && w.round >= 0:
		c.rounds[w.round]--
		if w.at < 0 {
			c.stats.Ahead--
		}
	}
	c.stats.Joined++
	r.stamp = s.step
	p.order.entered(c, r)
}
