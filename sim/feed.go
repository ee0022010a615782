package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
)

// feed takes the requests of a workload one ahead of the clock; of a closed loop, one a client.
type feed struct {
	workload Workload
	loop     ClosedLoop // the workload, if it is one
	sessions Sessions   // likewise
	broken   bool       // the workload gave an error
	given    int
}

// begin sets the workload and returns how many requests to take at first.
func (f *feed) begin(w Workload) int {
	f.workload = w
	f.sessions, _ = w.(Sessions)
	if loop, ok := w.(ClosedLoop); ok && loop.Concurrency() > 0 {
		f.loop = loop
		return loop.Concurrency()
	}
	return 1
}

// next takes a request, which arrives at the given time at the earliest.
func (f *feed) next(earliest des.Time) (a Arrival, ok bool, err error) {
	a, ok, err = f.workload.Next()
	return f.checked(a, ok, err, earliest)
}

// after takes the request that comes because another has ended: the next turn of its conversation,
// or the next of a client.
func (f *feed) after(ended Arrival, at des.Time, rejected bool, earliest des.Time) (
	a Arrival, ok bool, err error) {
	if f.sessions != nil {
		a, ok, err = f.sessions.Follow(ended, at, rejected)
		if ok || err != nil {
			return f.checked(a, ok, err, earliest)
		}
	}
	if f.loop == nil {
		return a, false, nil
	}
	f.loop.Ended(at)
	return f.next(earliest)
}

// checked counts a request of the workload.
func (f *feed) checked(a Arrival, ok bool, err error, earliest des.Time) (Arrival, bool, error) {
	if err != nil || !ok {
		f.broken = err != nil
		return a, false, err
	}
	if f.given++; a.At < earliest {
		return a, false, fmt.Errorf("sim: request %d arrives at %v, before the one in front of it",
			f.given, a.At)
	}
	return a, true, nil
}
