package traces

import (
	"slices"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// overlaps counts turns of sessions with recorded times that arrive before the one before them has
// ended. They are served all the same: a faster server than the recorded one would have had them.
type overlaps struct {
	open map[string][]des.Time // arrivals of a session's requests that have not ended, in order
	n    int
}

func (o *overlaps) begin(a *sim.Arrival) {
	if a.Session == "" {
		return
	}
	if o.open == nil {
		o.open = map[string][]des.Time{}
	}
	o.open[a.Session] = append(o.open[a.Session], a.At)
}

func (o *overlaps) end(ended *sim.Arrival, at des.Time) {
	times := o.open[ended.Session]
	i := slices.Index(times, ended.At)
	if i < 0 {
		return
	}
	if i > 0 { // the one before goes on
		o.n++
	}
	if i+1 < len(times) && times[i+1] < at {
		o.n++
	}
	if times = slices.Delete(times, i, i+1); len(times) == 0 {
		delete(o.open, ended.Session)
		return
	}
	o.open[ended.Session] = times
}
