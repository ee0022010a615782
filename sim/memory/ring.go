package memory

// ring is a list of places in a circle. One place, the end, is before the first and after the last.
type ring struct{ next, prev []int32 }

func (r *ring) unlink(i int32) {
	next, prev := r.next[i], r.prev[i]
	r.next[prev], r.prev[next] = next, prev
}

// append makes a place the last before the end.
func (r *ring) append(end, i int32) {
	last := r.prev[end]
	r.next[last], r.prev[i], r.next[i], r.prev[end] = i, last, end, i
}
