package kv

import (
	"fmt"
	"slices"
)

// Check verifies every invariant of the cache, in a pass over all entries.
func (c *Cache) Check() error { return recount{c}.check() }

// recount counts what a cache keeps count of.
type recount struct{ *Cache }

func (c recount) check() error {
	owner := make([]map[uint64]ref, len(c.pools))
	for i := range owner {
		owner[i] = map[uint64]ref{}
	}
	for _, s := range c.seqs {
		if !s.live {
			continue
		}
		if err := c.checkSeq(s, owner); err != nil {
			return err
		}
	}
	for i := range c.pools {
		p := &c.pools[i]
		if idle := c.idleIn(i); p.idle != idle {
			return fmt.Errorf("pool %d counts %d idle blocks, has %d", i, p.idle, idle)
		}
		if p.used != len(owner[i]) {
			return fmt.Errorf("law 1: pool %d counts %d blocks, %d are resident", i, p.used, len(owner[i]))
		}
		if p.reserved < 0 || int(p.fresh-p.first) > p.slots {
			return fmt.Errorf("law 2: pool %d has %d slots, handed out %d, %d reserved", i, p.slots,
				p.fresh-p.first, p.reserved)
		}
		if p.numbered && int(p.fresh-p.first) != p.used+len(p.free) {
			return fmt.Errorf("law 1: pool %d handed out %d slots, %d used + %d free", i, p.fresh-p.first,
				p.used, len(p.free))
		}
		if p.used+p.reserved > p.slots {
			return fmt.Errorf("law 2: pool %d has %d used + %d reserved of %d slots", i, p.used,
				p.reserved, p.slots)
		}
		for _, slot := range p.free {
			if r, taken := owner[i][uint64(slot)]; taken {
				return fmt.Errorf("law 1: slot %d of pool %d is free and owned by %+v", slot, i, r)
			}
		}
	}
	var reserved int64
	for _, s := range c.seqs {
		if s.live {
			reserved += s.reserved
		}
	}
	if reserved != c.reserved {
		return fmt.Errorf("law 2: %d bytes reserved, requests hold %d", c.reserved, reserved)
	}
	return c.checkShares()
}

// idleIn counts the evictable marks of a pool.
func (c recount) idleIn(pool int) (n int) {
	for _, s := range c.seqs {
		for g := range s.groups {
			if s.live && c.poolOf[g] == pool {
				for _, m := range s.synced(g)[:s.blocks] {
					if m.idle() {
						n++
					}
				}
			}
		}
	}
	return n
}

// same reports whether two refs are the same shared block.
func (c *requests) same(a, b ref) bool {
	at := c.seqs[a.seq].sharedAt(int(a.block))
	return at >= 0 && at == c.seqs[b.seq].sharedAt(int(b.block)) && a.group == b.group
}

// checkShares verifies the counts of requests and of resident marks of shared blocks.
func (c recount) checkShares() error {
	x := &c.shares
	users, holders := make([]int32, len(x.users)), make([]uint16, len(x.holders))
	live := 0
	for _, s := range c.seqs {
		for b, at := range s.shared {
			if at < 0 {
				continue
			}
			if !s.live || x.known[s.keys[b]] != at {
				return fmt.Errorf("request %d shares block %d as entry %d, its key belongs to entry %d", s.id,
					b, at, x.known[s.keys[b]])
			}
			if users[at]++; users[at] == 1 {
				live++
			}
			for g := range s.groups {
				if i := int(at)*x.groups + g; s.resident(g, b) {
					if slot := s.slot(g*s.cap + b); slot != x.slots[i] {
						return fmt.Errorf("law 1: request %d has block %d, group %d in slot %d, others have it "+
							"in %d", s.id, b, g, slot, x.slots[i])
					}
					holders[i]++
				}
			}
		}
	}
	for at := range users {
		if users[at] > 0 && users[at] != x.users[at] {
			return fmt.Errorf("law 1: shared block %d counts %d requests, has %d", at, x.users[at],
				users[at])
		}
	}
	for i := range holders {
		if users[i/x.groups] > 0 && holders[i] != x.holders[i] {
			return fmt.Errorf("law 1: shared block %d, group %d counts %d holders, has %d", i/x.groups,
				i%x.groups, x.holders[i], holders[i])
		}
	}
	if live != x.live {
		return fmt.Errorf("law 1: %d shared blocks are counted, requests have %d", x.live, live)
	}
	return nil
}

// placeOf returns a key of a resident block: its slot or, if slots have no numbers, its
// identity.
func (c recount) placeOf(s *Seq, g, b int) uint64 {
	e := s.sharedAt(b)
	switch {
	case c.addressed:
		return uint64(s.slots[g*s.cap+b])
	case e >= 0:
		return 1<<63 | uint64(int(e)*c.shares.groups+g)
	}
	return uint64(s.id)<<32 | uint64(g*s.cap+b)
}

// synced returns a copy of a group's marks with deferred changes applied.
func (s *Seq) synced(g int) []mark {
	row := slices.Clone(s.row(g))
	s.apply(g, row)
	return row
}

func (c recount) checkSeq(s *Seq, owner []map[uint64]ref) error {
	act, pinned, recent := 0, 0, make([]int32, c.ring+1)
	for g := range s.groups {
		pool := c.poolOf[g]
		for b, m := range s.synced(g) {
			r := ref{s.id, 0, uint16(g), uint16(b)}
			if b >= s.blocks {
				if m != 0 {
					return fmt.Errorf("law 1: %+v is beyond the %d blocks of its request", r, s.blocks)
				}
				continue
			}
			if s.here != nil && m.resident() != (s.hereOf(g)[b/64]>>(b%64)&1 != 0) {
				return fmt.Errorf("bits of resident blocks are wrong of %+v", r)
			}
			if m.resident() {
				at := c.placeOf(s, g, b)
				if prev, taken := owner[pool][at]; taken && !c.same(prev, r) {
					return fmt.Errorf("law 1: slot %d is owned by %+v and %+v", at, prev, r)
				}
				owner[pool][at] = r
			}
			if m&held != 0 {
				pinned++
			}
			written := b < int(s.groups[g].blocks)
			if written && b >= s.saved && !(m.resident() && m&held != 0) {
				return fmt.Errorf("law 3: %+v is neither in DRAM (%d saved) nor held in HBM", r, s.saved)
			}
			if m&active != 0 {
				act++
				if !m.resident() {
					return fmt.Errorf("law 7: %+v is selected but not in HBM", r)
				}
			} else if was := m.when(); was >= s.born && was+uint32(c.window) > s.step {
				recent[was&c.ring]++
			}
		}
	}
	if pinned != s.held {
		return fmt.Errorf("request %d counts %d held blocks, has %d", s.id, s.held, pinned)
	}
	if act != s.active {
		return fmt.Errorf("request %d counts %d active blocks, has %d", s.id, s.active, act)
	}
	s.settleAgain(&c.shape)
	for i := range recent {
		if recent[i] != s.recent[i] {
			return fmt.Errorf("request %d counts %d recent blocks in bucket %d, has %d", s.id, s.recent[i],
				i, recent[i])
		}
	}
	return nil
}
