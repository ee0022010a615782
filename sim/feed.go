package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
)

// feed reads the requests of a workload: one ahead of the clock or, in a closed loop, one per
// client.
type feed struct {
	workload Workload
	loop     ClosedLoop // the workload, if it is one
	sessions Sessions   // likewise
	broken   bool       // the workload returned an error, which contains its position
	given    int
}

// begin sets the workload and returns the number of requests to read at the start.
func (f *feed) begin(w Workload) int {
	f.workload = w
	f.sessions, _ = w.(Sessions)
	if loop, ok := w.(ClosedLoop); ok && loop.Concurrency() > 0 {
		f.loop = loop
		return loop.Concurrency()
	}
	return 1
}

// next reads a request. It must not arrive before the given time.
func (f *feed) next(earliest des.Time) (a Arrival, ok bool, err error) {
	a, ok, err = f.workload.Next()
	return f.checked(a, ok, err, earliest)
}

// after reads the request that follows an ended one: the next turn of its conversation, or the next
// request of a client.
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

// checked validates and counts a request of the workload.
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
