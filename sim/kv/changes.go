package kv

import "slices"

// Missed returns Refs in the order of accesses: prefills first, then by request, group and
// position in the selection. Valid until the next Fill.
func (c *filling) Missed() []BlockRef {
	if c.microbatch > 0 {
		return c.sorted // sortRefs keeps the order of accesses here
	}
	return c.refs
}

// Changes returns the slot changes since the last ForgetChanges. seated are blocks that got
// slots for writing or that joined a slot of another request. evicted are evicted blocks; the
// first `before` were evicted before the last Fill. The cache must have Tables. A device with
// its own block tables needs these changes in addition to Missed.
func (c *changes) Changes() (seated, evicted []BlockRef, before int) {
	return c.seated, c.gone, c.goneBefore
}

// ForgetChanges clears the recorded changes.
func (c *changes) ForgetChanges() {
	c.seated, c.gone, c.goneBefore = c.seated[:0], c.gone[:0], 0
}

// forgetChanges deletes the recorded changes of a freed request.
func (c *changes) forgetChanges(s *Seq) {
	of := func(r BlockRef) bool { return r.Seq == s.id }
	if len(c.gone) > 0 {
		for _, r := range c.gone[:c.goneBefore:c.goneBefore] {
			if of(r) {
				c.goneBefore--
			}
		}
		c.gone = slices.DeleteFunc(c.gone, of)
	}
	c.seated = slices.DeleteFunc(c.seated, of)
}
