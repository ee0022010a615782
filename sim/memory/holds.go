package memory

import "github.com/sparseserve/sparseserve/sim/des"

// holds lists HBM blocks or nodes that are being saved to the tiers below, in save order. Their
// memory cannot be reused before the save ends.
type holds[T any] []held[T]

type held[T any] struct {
	what  T
	until des.Time
}

func (h *holds[T]) add(what T) { *h = append(*h, held[T]{what, never}) }

// saved sets the end time of all pending saves.
func (h holds[T]) saved(at des.Time) {
	for i := len(h) - 1; i >= 0 && h[i].until == never; i-- {
		h[i].until = at
	}
}

// end releases all entries whose save has ended by now.
func (h *holds[T]) end(now des.Time, giveUp func(T)) {
	n := 0
	for n < len(*h) && (*h)[n].until <= now {
		giveUp((*h)[n].what)
		n++
	}
	if n > 0 {
		*h = (*h)[:copy(*h, (*h)[n:])]
	}
}

// next returns the end time of the oldest save. ok is false if there is none or the time is
// unknown.
func (h holds[T]) next() (at des.Time, ok bool) {
	if len(h) == 0 || h[0].until == never {
		return 0, false
	}
	return h[0].until, true
}
