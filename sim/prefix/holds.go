package prefix

import "github.com/sparseserve/sparseserve/sim/des"

// holds is what HBM has of chunks that are being saved to the tiers below, in the order of their
// saves: nobody else gets its memory until then.
type holds[T any] []held[T]

type held[T any] struct {
	what  T
	until des.Time
}

func (h *holds[T]) add(what T) { *h = append(*h, held[T]{what, never}) }

// saved has what is to be saved be in DRAM from a time on.
func (h holds[T]) saved(at des.Time) {
	for i := len(h) - 1; i >= 0 && h[i].until == never; i-- {
		h[i].until = at
	}
}

// end gives up what has been saved by now.
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

// next returns when something is given up next; ok is false where that is not known.
func (h holds[T]) next() (at des.Time, ok bool) {
	if len(h) == 0 || h[0].until == never {
		return 0, false
	}
	return h[0].until, true
}
