package memory

// ring is a list of places in a circle. Place 0, the end, is before the first and after the last.
type ring struct{ next, prev []int32 }

func newRing() ring { return ring{make([]int32, 1), make([]int32, 1)} }

// grow adds a place outside the list.
func (r *ring) grow() { r.next, r.prev = append(r.next, 0), append(r.prev, 0) }

func (r *ring) unlink(i int32) {
	next, prev := r.next[i], r.prev[i]
	r.next[prev], r.prev[next] = next, prev
}

// append makes a place the last before the end.
func (r *ring) append(i int32) {
	last := r.prev[0]
	r.next[last], r.prev[i], r.next[i], r.prev[0] = i, last, 0, i
}
