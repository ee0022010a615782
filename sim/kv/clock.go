package kv

// clock gives a second chance (Corbató, "A Paging Experiment with the Multics System", 1968).
// The hand visits blocks in order of entry, skips blocks used since its last visit, and evicts
// the first block that was not. The access that loads a block does not count as a use. Without
// second chances it is FIFO: it skips only blocks that are not idle.
//
// The front of the queue is the hand's position. Skipped blocks move to the back. The ref's
// stamp holds the step up to which uses have been counted.
type clock struct {
	pool int
	fifo bool // no second chances
	q    refQueue
}

func (k *clock) entered(_ *Cache, r ref) { k.q.push(r) }

func (k *clock) victim(c *Cache, _ *Layer) (ref, bool) {
	if c.pools[k.pool].idle == 0 {
		return ref{}, false // the hand does not move
	}
	for range 2 * k.q.n { // in the first round all blocks may have been used
		r := k.q.pop()
		if !c.stays(r) {
			continue
		}
		if k.fifo && c.at(r).idle() || !k.fifo && c.pass(&r) {
			return r, true
		}
		k.q.push(r)
	}
	return ref{}, false
}

func (k *clock) tidy(c *Cache, slots int) {
	if needsTidy(k.q.n, slots) {
		k.q.tidy(c)
	}
}
