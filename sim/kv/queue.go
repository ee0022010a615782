package kv

import "slices"

// refQueue is refs in order of arrival.
type refQueue struct {
	refs []ref
	head int // refs before it have left
}

func (q *refQueue) len() int { return len(q.refs) - q.head }

func (q *refQueue) push(r ref) { q.refs = append(q.refs, r) }

func (q *refQueue) pop() ref {
	r := q.first()
	if q.head++; q.head >= 1024 && 2*q.head >= len(q.refs) {
		q.close()
	}
	return r
}

// close reuses the memory of refs that have left.
func (q *refQueue) close() {
	q.refs, q.head = q.refs[:copy(q.refs, q.refs[q.head:])], 0
}

// first returns the next ref without removing it.
func (q *refQueue) first() ref { return q.refs[q.head] }

// tidy drops the refs of freed requests and evicted blocks, and keeps the others in order.
func (q *refQueue) tidy(c *Cache) {
	q.close()
	q.refs = slices.DeleteFunc(q.refs, func(r ref) bool { return !c.stays(r) })
}
