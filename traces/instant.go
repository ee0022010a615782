package traces

import (
	"iter"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Requests opens a workload and yields its requests, as All does.
func Requests(spec Spec, seed uint64, model ...Tokenizer) iter.Seq2[sim.Arrival, error] {
	return func(yield func(sim.Arrival, error) bool) {
		stream, err := Open(spec, seed, model...)
		if err != nil {
			yield(sim.Arrival{}, err)
			return
		}
		defer stream.Close()
		stream.All()(yield)
	}
}

// All yields the requests of a server with zero latency: a turn arrives after its user's think
// time. An error is the last element.
func (s *Stream) All() iter.Seq2[sim.Arrival, error] {
	return func(yield func(sim.Arrival, error) bool) {
		in := instant{s: s}
		for range max(1, s.Concurrency()) {
			in.take(s.Next())
		}
		for in.coming.Len() > 0 && in.err == nil {
			a, _ := in.coming.Next()
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

// instant is a server with zero latency, and its queue of arrivals.
type instant struct {
	s      *Stream
	coming des.Queue[expected]
	err    error
	turn   bool // the next request is a further turn
}

// serve schedules the requests that follow the end of a.
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
		in.coming.Schedule(a.At, 0, expected{a, in.turn})
	}
}

// expected is a scheduled request.
type expected struct {
	sim.Arrival
	turn bool // a further turn of a session
}
