package des

// Queue holds future events in the total order (time, priority, sequence of scheduling). The
// zero value is ready to use. It is not safe for concurrent use. In steady state it allocates
// nothing: the heap's storage is kept.
type Queue[E any] struct {
	heap Heap[scheduled[E]]
	seq  uint64
	now  Time
}

type scheduled[E any] struct {
	at   Time
	prio int8
	seq  uint64
	ev   E
}

func (a scheduled[E]) before(b scheduled[E]) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.prio != b.prio {
		return a.prio < b.prio
	}
	return a.seq < b.seq
}

// Now returns the current time: that of the last event taken, or of Pass.
func (q *Queue[E]) Now() Time { return q.now }

// Len returns the number of pending events.
func (q *Queue[E]) Len() int { return q.heap.Len() }

// More reports whether another event is due at the current time.
func (q *Queue[E]) More() bool { return q.heap.Len() > 0 && q.heap.Top().at == q.now }

// At returns the time of the next event; ok is false when none is left.
func (q *Queue[E]) At() (at Time, ok bool) {
	if q.heap.Len() == 0 {
		return 0, false
	}
	return q.heap.Top().at, true
}

// Pass advances the clock without an event. It panics if the time is in the past or beyond the next
// event.
func (q *Queue[E]) Pass(to Time) {
	if next, ok := q.At(); to < q.now || ok && to > next {
		panic("des: " + to.String() + " is not between now, " + q.now.String() + ", and the next event")
	}
	q.now = to
}

// Schedule adds an event. Events at one time are ordered by ascending priority, then by order of
// scheduling. It panics if at is in the past: time never runs back (law 5).
func (q *Queue[E]) Schedule(at Time, prio int8, ev E) {
	if at < q.now {
		panic("des: event scheduled at " + at.String() + ", before now " + q.now.String())
	}
	if q.seq++; q.heap.Before == nil {
		q.heap.Before = scheduled[E].before
	}
	q.heap.Push(scheduled[E]{at, prio, q.seq, ev})
}

// Next removes the first event and advances the clock to it. ok is false if no event is left.
func (q *Queue[E]) Next() (ev E, ok bool) {
	if q.heap.Len() == 0 {
		return ev, false
	}
	first := q.heap.Top()
	q.heap.Remove(0)
	q.now = first.at
	return first.ev, true
}
