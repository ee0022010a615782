package kv

// hand evicts from a list of the blocks in order of entry, by a hand that visits the oldest first:
//
//   - FIFO evicts the first idle block.
//   - CLOCK gives a second chance (Corbató, "A Paging Experiment with the Multics System", 1968):
//     the hand evicts the first block that was not used since its last visit. Visited blocks become
//     the youngest.
//   - SIEVE (Zhang et al., "SIEVE is Simpler than LRU", NSDI'24, Algorithm 1) is CLOCK, but visited
//     blocks keep their places. The hand goes on to younger blocks, then restarts at the oldest.
//
// The access that loads a block does not count as a use. A ref's stamp holds the step up to which
// uses have been counted. Blocks of freed requests are removed.
type hand struct {
	pool          int
	fifo          bool     // uses do not count
	stay          bool     // visited blocks keep their places
	ahead, passed refQueue // blocks ahead of the hand, the next one first, and blocks that it passed
}

func (h *hand) entered(c *Cache, r ref) {
	for h.ahead.len() > 0 && !c.stays(h.ahead.first()) {
		h.ahead.pop()
	}
	h.turn()
	h.ahead.push(r)
}

// turn moves a hand at the youngest block back to the oldest.
func (h *hand) turn() {
	if h.ahead.len() == 0 {
		h.ahead, h.passed = h.passed, h.ahead
	}
}

func (h *hand) victim(c *Cache, _ *Layer) (ref, bool) {
	if c.pools[h.pool].idle == 0 {
		return ref{}, false // the hand does not move
	}
	// in the first round all blocks may have been used
	for range 2 * (h.ahead.len() + h.passed.len()) {
		h.turn()
		r := h.ahead.pop()
		switch {
		case !c.stays(r):
		case h.fifo && c.at(r).idle() || !h.fifo && c.pass(&r):
			return r, true
		case h.stay:
			h.passed.push(r)
		default:
			h.ahead.push(r)
		}
	}
	return ref{}, false
}

// tidy bounds refs by a constant factor of the pool's slots.
func (h *hand) tidy(c *Cache, slots int) {
	if h.ahead.len()+h.passed.len() >= 2*slots+1024 {
		h.ahead.tidy(c)
		h.passed.tidy(c)
	}
}
