package traces

import (
	"container/heap"
	"iter"

	"github.com/sparseserve/sparseserve/sim"
)

// All yields the requests as a server would have them that takes no time: a turn comes when its
// user has thought. An error is the last.
func (s *Stream) All() iter.Seq2[sim.Arrival, error] {
	return func(yield func(sim.Arrival, error) bool) {
		in := instant{s: s}
		for range max(1, s.Concurrency()) {
			in.take(s.Next())
		}
		for len(in.coming) > 0 && in.err == nil {
			a := heap.Pop(&in.coming).(expected)
			if !yield(a.Arrival, nil) {
				return
			}
			in.serve(a)
		}
		if in.err != nil {
			yield(sim.Arrival{}, in.err)
		}
	}
}

// instant is that server, and what it waits for.
type instant struct {
	s      *Stream
	coming queue
	taken  int
	err    error
	turn   bool // the request that is taken follows another
}

// serve takes what comes after a request.
func (in *instant) serve(a expected) {
	next, follows, err := in.s.Follow(a.Arrival, a.At, false)
	in.turn = follows
	in.take(next, follows, err)
	in.turn = false
	switch {
	case in.s.clients == nil && !a.turn:
	case in.s.clients != nil && !follows:
		in.s.Ended(a.At)
	default:
		return
	}
	in.take(in.s.Next())
}

func (in *instant) take(a sim.Arrival, ok bool, err error) {
	if in.err == nil {
		in.err = err
	}
	if ok && err == nil {
		heap.Push(&in.coming, expected{a, in.taken, in.turn})
		in.taken++
	}
}

// expected is a request with its place among those that were made.
type expected struct {
	sim.Arrival
	n    int
	turn bool
}

// queue is a heap by time, then as made.
type queue []expected

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q queue) Less(i, j int) bool {
	if q[i].At != q[j].At {
		return q[i].At < q[j].At
	}
	return q[i].n < q[j].n
}
func (q *queue) Push(x any) { *q = append(*q, x.(expected)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}
