package kv

// fifo evicts the block that entered first; one that is in use goes to the
// back. A ref is live while its request is: a block enters anew only after it
// was evicted, and its ref went with it.
type fifo struct{ q refQueue }

func (f *fifo) entered(r ref) { f.q.push(r) }

func (f *fifo) live(c *Cache, r ref) bool {
	m := c.at(r)
	return m != nil && m.resident() && c.seqs[r.seq].born <= r.stamp
}

func (f *fifo) victim(c *Cache, _ int) (ref, bool) {
	for range f.q.n {
		r := f.q.pop()
		if !f.live(c, r) {
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

// tidy drops the refs of requests that have gone when they outnumber the
// slots, so that the queue stays within a constant factor of the pool.
func (f *fifo) tidy(c *Cache, slots int) {
	if f.q.n < 2*slots+1024 {
		return
	}
	for range f.q.n {
		if r := f.q.pop(); f.live(c, r) {
			f.q.push(r)
		}
	}
}

// refQueue is a ring of refs in order of arrival.
type refQueue struct {
	ring []ref
	head int
	n    int
}

func (q *refQueue) push(r ref) {
	if q.n == len(q.ring) {
		bigger := make([]ref, max(1024, 2*len(q.ring)))
		k := copy(bigger, q.ring[q.head:])
		copy(bigger[k:], q.ring[:q.head])
		q.ring, q.head = bigger, 0
	}
	i := q.head + q.n
	if i >= len(q.ring) {
		i -= len(q.ring)
	}
	q.ring[i] = r
	q.n++
}

func (q *refQueue) pop() ref {
	r := q.ring[q.head]
	q.head++
	if q.head == len(q.ring) {
		q.head = 0
	}
	q.n--
	return r
}
