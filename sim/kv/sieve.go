package kv

// sieve is SIEVE (Zhang et al., "SIEVE is Simpler than LRU", NSDI'24, Algorithm 1). Blocks are
// listed in order of entry, new blocks at the head, not visited. The hand moves from the tail
// to the head, then restarts at the tail. It clears visited blocks, which keep their positions,
// and evicts the first block that is not visited.
//
// The list is two queues: the blocks that the hand has passed since the tail, and the blocks
// ahead, the next one first. Blocks of freed requests are removed.
type sieve struct {
	pool          int
	passed, ahead refQueue
}

func (s *sieve) entered(c *Cache, r ref) {
	for s.ahead.n > 0 && !c.stays(s.ahead.first()) {
		s.ahead.pop()
	}
	s.turn()
	s.ahead.push(r)
}

// turn moves a hand at the head back to the tail.
func (s *sieve) turn() {
	if s.ahead.n == 0 {
		s.ahead, s.passed = s.passed, s.ahead
	}
}

func (s *sieve) victim(c *Cache, _ *Layer) (ref, bool) {
	if c.pools[s.pool].idle == 0 {
		return ref{}, false // the hand does not move
	}
	for range 2 * (s.ahead.n + s.passed.n) { // in the first round all blocks may have been visited
		s.turn()
		r := s.ahead.pop()
		if !c.stays(r) {
			continue
		}
		if c.pass(&r) {
			return r, true
		}
		s.passed.push(r)
	}
	return ref{}, false
}

func (s *sieve) tidy(c *Cache, slots int) {
	if needsTidy(s.ahead.n+s.passed.n, slots) {
		s.ahead.tidy(c)
		s.passed.tidy(c)
	}
}
