package kv

// ref names a block in an eviction order. Orders are lazy: a ref whose block
// has been used, moved or freed since is stale and skipped when it surfaces.
type ref struct {
	seq   int32
	stamp uint32
	group uint16 // index in the sample
	block uint16
}

// evictor is one eviction order over the blocks of a pool.
type evictor interface {
	// entered is told of a block that got a slot.
	entered(ref)
	// idle is told of a block that became evictable: no longer selected,
	// pinned or waiting to be saved.
	idle(ref)
	// victim returns the next block to evict, or false when none is evictable.
	victim(c *Cache) (ref, bool)
	// tidy is called between steps, to drop stale refs of a pool of that size.
	tidy(c *Cache, slots int)
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

// compact drops stale refs when they outnumber the live ones, so that the
// ring stays within a constant factor of the pool: amortised constant time.
func (q *refQueue) compact(slots int, live func(ref) bool) {
	if q.n < 2*slots+1024 {
		return
	}
	for range q.n {
		if r := q.pop(); live(r) {
			q.push(r)
		}
	}
}

// lru evicts the block whose last use lies furthest back. Use is counted by
// (step, layer): all heads of a batch read a layer's blocks in one kernel, so
// they are used at one time. Blocks in use are in no queue; a block joins the
// tail when a step of its layer no longer selects it, which is the order of
// last use. A ref is live while its block is still idle with that same stamp.
type lru struct{ q refQueue }

func (l *lru) entered(ref) {}

func (l *lru) idle(r ref) { l.q.push(r) }

func (l *lru) tidy(c *Cache, slots int) {
	l.q.compact(slots, func(r ref) bool { return l.live(c, r) })
}

func (l *lru) live(c *Cache, r ref) bool {
	e := c.entry(r)
	return e != nil && e.resident() && !e.busy() && e.when() == r.stamp
}

func (l *lru) victim(c *Cache) (ref, bool) {
	for l.q.n > 0 {
		if r := l.q.pop(); l.live(c, r) {
			return r, true
		}
	}
	return ref{}, false
}

// fifo evicts the block that entered first; one that is in use goes to the
// back. A ref is live while its block has not been freed since.
type fifo struct{ q refQueue }

func (f *fifo) entered(r ref) { f.q.push(r) }
func (f *fifo) idle(ref)      {}

func (f *fifo) tidy(c *Cache, slots int) {
	f.q.compact(slots, func(r ref) bool { return f.live(c, r) })
}

func (f *fifo) live(c *Cache, r ref) bool {
	e := c.entry(r)
	return e != nil && e.resident() && c.seqs[r.seq].born <= r.stamp
}

func (f *fifo) victim(c *Cache) (ref, bool) {
	for range f.q.n {
		r := f.q.pop()
		if !f.live(c, r) {
			continue
		}
		if c.entry(r).busy() {
			f.q.push(r)
			continue
		}
		return r, true
	}
	return ref{}, false
}
