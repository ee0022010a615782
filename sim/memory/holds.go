package memory

import "github.com/sparseserve/sparseserve/sim/des"

// holds lists HBM blocks or nodes whose memory cannot be reused before the tiers below have saved
// them, in save order.
type holds[T any] struct {
	held  []held[T]
	ended int // number of entries so far that have left the list
}

type held[T any] struct {
	what  T
	until des.Time // never: unknown
}

// add adds an entry and returns its number, from 1.
func (h *holds[T]) add(what T, until des.Time) int {
	h.held = append(h.held, held[T]{what, until})
	return h.ended + len(h.held)
}

// saved sets the end time of all pending saves.
func (h *holds[T]) saved(at des.Time) {
	for i := len(h.held) - 1; i >= 0 && h.held[i].until == never; i-- {
		h.held[i].until = at
	}
}

// end releases all entries whose save has ended by now.
func (h *holds[T]) end(now des.Time, giveUp func(T)) {
	n := 0
	for n < len(h.held) && h.held[n].until <= now {
		giveUp(h.held[n].what)
		n++
	}
	if n > 0 {
		h.held = h.held[:copy(h.held, h.held[n:])]
		h.ended += n
	}
}

// next returns the end time of the oldest save. ok is false if there is none or the time is
// unknown.
func (h *holds[T]) next() (at des.Time, ok bool) {
	if len(h.held) == 0 || h.held[0].until == never {
		return 0, false
	}
	return h.held[0].until, true
}
