package kv

import "slices"

// Missed is Refs in the order of accesses: prefills first, then request by request, group by
// group, and in each as its selection lists them. Valid until the next Fill.
func (c *Cache) Missed() []BlockRef {
	if c.microbatch > 0 {
		return c.sorted // sortRefs has left them there
	}
	return c.refs
}

// Changes returns, since the last ForgetChanges, the blocks that got slots for what the model
// writes, or those in which others have them, and those evicted, the first
// `before` of them before the last Fill. Only a cache with Tables has them: a device that looks
// blocks up in tables of its own needs them in addition to Missed.
func (c *Cache) Changes() (seated, evicted []BlockRef, before int) {
	return c.seated, c.gone, c.goneBefore
}

// ForgetChanges begins anew.
func (c *Cache) ForgetChanges() {
	c.seated, c.gone, c.goneBefore = c.seated[:0], c.gone[:0], 0
}

func (c *Cache) noteGone(r ref, slot uint32) {
	c.gone = append(c.gone, BlockRef{Seq: r.seq, Group: c.Sample.Groups[r.group],
		Block: int32(r.block), Slot: slot})
}

func (c *Cache) noteSeated() {
	for _, r := range c.writing {
		c.noteSeat(r)
	}
}

func (c *Cache) noteSeat(r ref) {
	c.seated = append(c.seated, BlockRef{Seq: r.seq, Group: c.Sample.Groups[r.group],
		Block: int32(r.block), Slot: c.slotOf(r)})
}

// forgetChanges drops the changes of a request that is freed.
func (c *Cache) forgetChanges(s *Seq) {
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
