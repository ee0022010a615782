package kv

// clock gives a second chance (Corbató, "A Paging Experiment with the Multics System", 1968):
// the hand visits the blocks in the order in which they entered, skips those used since its
// last visit, and evicts the first that was not. The access that loads a block does not count
// as a use. Without second chances it is FIFO: only blocks that are not idle are skipped.
//
// The front of the queue is the hand's position. Skipped blocks go to the back, with the step
// up to which their uses are known in the ref's stamp.
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
	for range 2 * k.q.n { // the first round may find all visited
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
