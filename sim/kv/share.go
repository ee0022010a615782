package kv

// Requests with a common prompt prefix share its blocks, because the same tokens have the same
// KV. A shared block is stored once in DRAM and once in HBM. A request that misses a block
// which another request has in HBM uses that slot without a load. Each request has its own
// mark, which ages and is evicted by that request's uses. The slot becomes free when the last
// mark leaves it. When all requests of a block are freed, its content leaves HBM.

// shares are KV blocks with the same content, one entry per block of the whole model.
type shares struct {
	groups  int
	known   map[uint64]int32 // by key: an entry, or the complement of the only request's handle
	users   []int32          // by entry: requests
	holders []uint16         // [entry][groups]: resident marks, or coming
	slots   []uint32         // [entry][groups], if there are holders
	free    []int32          // entries
	live    int              // entries that are not free

	after []queued // misses of this Fill whose block is loaded by another miss
}

// coming is the holder count of a block that the current Fill loads.
const coming = ^uint16(0)

// Adopt starts a new request with the given number of full blocks in DRAM, a prefix that other
// requests left there. Each block enters HBM for this request when it is selected or pinned.
// Blocks with equal keys have equal content and the same position in their requests. The first
// blocks have keys; they are shared with live requests that have the same keys.
func (c *Cache) Adopt(s *Seq, blocks int, keys []uint64) {
	s.blocks, s.full, s.saved = blocks, blocks, blocks
	for g := range s.groups {
		s.groups[g].blocks = int32(blocks)
	}
	c.name(s, keys, true)
}

// Name sets the keys of a request's first blocks, which are in DRAM, so that later requests can
// share them. keys includes the keys given before. If another request already has the same key,
// this request has its own copy, which stays private.
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

// open returns a free entry without holders.
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

// seat sets a block's slot, with one holder.
func (x *shares) seat(at int32, g int, slot uint32) {
	i := int(at)*x.groups + g
	x.holders[i], x.slots[i] = 1, slot
}

// sharedAt returns the entry of a request's block, or -1.
func (s *Seq) sharedAt(block int) int32 {
	if block < len(s.shared) {
		return s.shared[block]
	}
	return -1
}

// unref drops a request's reference to a slot and reports whether it was the last.
func (x *shares) unref(s *Seq, g, block int) (free bool) {
	at := s.sharedAt(block)
	if at < 0 {
		return true
	}
	n := &x.holders[int(at)*x.groups+g]
	*n--
	return *n == 0
}

// unname removes a request from its shared blocks, after their slots are released.
func (x *shares) unname(s *Seq) {
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

// join removes misses whose blocks other requests have in HBM, and uses those slots before
// anything is evicted. If several requests miss the same block, one loads it and the others
// wait.
func (c *Cache) join(l *Layer) {
	x := &c.shares
	x.after = x.after[:0]
	n := 0
	for _, r := range c.missing {
		if at := c.seqs[r.seq].sharedAt(int(r.block)); at >= 0 {
			e := int(at)*x.groups + int(r.group)
			switch h := &x.holders[e]; *h {
			case 0:
				*h, x.slots[e] = coming, uint32(n)
			case coming:
				if c.microbatch > 0 {
					sooner(c, &c.missing[x.slots[e]], r)
				}
				x.after = append(x.after, r)
				continue
			default:
				c.attach(l, r)
				continue
			}
		}
		c.missing[n] = r
		n++
	}
	c.missing = c.missing[:n]
}

// sooner loads a block in the round of a request that waits for it, if that round is earlier.
func sooner(c *Cache, loaded *queued, w queued) {
	if loaded.ahead && !w.ahead {
		loaded.ahead = false
		c.stats.Ahead--
	}
	if w.round >= loaded.round {
		return
	}
	if c.rounds[loaded.round]--; w.round >= 0 {
		c.rounds[w.round]++
	}
	loaded.round = w.round
}

// attachNow assigns a missed block the slot of another request, and reports whether there is
// one.
func (c *Cache) attachNow(l *Layer, r queued) bool {
	x, at := &c.shares, c.seqs[r.seq].sharedAt(int(r.block))
	if at < 0 {
		return false
	}
	if h := x.holders[int(at)*x.groups+int(r.group)]; h == 0 || h == coming {
		return false
	}
	c.attach(l, r)
	return true
}

// joinAfter assigns waiting misses the slots of the blocks that the Fill has loaded.
func (c *Cache) joinAfter(l *Layer) error {
	x := &c.shares
	for _, r := range x.after {
		at := c.seqs[r.seq].sharedAt(int(r.block))
		if x.holders[int(at)*x.groups+int(r.group)] > 0 {
			c.attach(l, r)
			continue
		}
		// Progressive attention has evicted the block again in the same layer.
		c.missing = append(c.missing, r)
		if c.addressed {
			c.refs = append(c.refs, BlockRef{})
		}
		if err := c.placeOne(l, c.missing, c.refs, len(c.missing)-1); err != nil {
			return err
		}
	}
	return nil
}

// attach assigns a missed block the slot of another request.
func (c *Cache) attach(l *Layer, r queued) {
	x, s, p := &c.shares, c.seqs[r.seq], &c.pools[l.pool]
	i := int(s.shared[r.block])*x.groups + int(r.group)
	x.holders[i]++
	at := int(r.group)*s.cap + int(r.block)
	s.setSlot(at, x.slots[i])
	s.arrive(int(r.group), int(r.block))
	if c.tables {
		c.seated = append(c.seated, c.named(r.ref, c.slotOf(r.ref)))
	}
	if s.groups[r.group].parked && s.marks[at].idle() { // parked while it waited
		p.idle++
		l.version++
	}
	switch {
	case r.stamp == 0:
		c.stats.Resumed--
	case r.round >= 0:
		c.rounds[r.round]--
		if r.ahead {
			c.stats.Ahead--
		}
	}
	c.stats.Joined++
	r.stamp = s.step
	p.order.entered(c, r.ref)
}
