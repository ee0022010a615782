package kv

// fifo evicts the block that entered first; one in use enters again.
type fifo struct{ q refQueue }

func (f *fifo) entered(_ *Cache, r ref) { f.q.push(r) }

func (f *fifo) victim(c *Cache, _ *Layer) (ref, bool) {
	for range f.q.n {
		r := f.q.pop()
		if !c.stays(r) {
			continue
		}
		if !c.at(r).idle() {
			f.q.push(r)
			continue
		}
		return r, true
	}
	return ref{}, false
}

func (f *fifo) tidy(c *Cache, slots int) {
	if crowded(f.q.n, slots) {
		f.q.tidy(c)
	}
}
