package kv

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

// first returns the next ref without removing it.
func (q *refQueue) first() ref { return q.ring[q.head] }

// tidy drops the refs of freed requests and evicted blocks, and keeps the others in order.
func (q *refQueue) tidy(c *Cache) {
	for range q.n {
		if r := q.pop(); c.stays(r) {
			q.push(r)
		}
	}
}
