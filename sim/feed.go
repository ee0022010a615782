package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Feed reads the requests of a workload: one ahead of the clock or, in a closed loop, one per
// client.
type Feed struct {
	workload Workload
	loop     ClosedLoop // the workload, if it is one
	sessions Sessions   // likewise
	broken   bool       // the workload returned an error
	given    int
}

// Begin sets the workload and returns the number of requests to read at the start.
func (f *Feed) Begin(w Workload) int {
	f.workload = w
	f.sessions, _ = w.(Sessions)
	if loop, ok := w.(ClosedLoop); ok && loop.Concurrency() > 0 {
		f.loop = loop
		return loop.Concurrency()
	}
	return 1
}

// Next reads a request. It must not arrive before the given time.
func (f *Feed) Next(earliest des.Time) (a Arrival, ok bool, err error) {
	a, ok, err = f.workload.Next()
	return f.checked(a, ok, err, earliest)
}

// After reads the request that follows an ended one: the next turn of its conversation, or the next
// request of a client.
func (f *Feed) After(ended Arrival, at des.Time, rejected bool, earliest des.Time) (
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
	return f.Next(earliest)
}

// checked validates and counts a request of the workload.
func (f *Feed) checked(a Arrival, ok bool, err error, earliest des.Time) (Arrival, bool, error) {
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

// Open reports whether the workload is read ahead of the clock, as it is without clients.
func (f *Feed) Open() bool { return f.loop == nil }

// Broken reports whether the workload returned an error, which contains its position.
func (f *Feed) Broken() bool { return f.broken }
