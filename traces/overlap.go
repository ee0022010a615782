package traces

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// overlaps counts turns of sessions with recorded times that arrive before the turn before has
// ended. They are served as recorded, because with a faster server they would not have overlapped.
type overlaps struct {
	open map[string][]begun // a session's requests that have not ended, in order
	n    int
	// position of the first such turn in the file
	line    int
	session string
}

// begun is a request that has arrived.
type begun struct {
	at      des.Time
	line    int
	counted bool
}

func (o *overlaps) begin(a *sim.Arrival, line int) {
	if a.Session == "" {
		return
	}
	if o.open == nil {
		o.open = map[string][]begun{}
	}
	o.open[a.Session] = append(o.open[a.Session], begun{at: a.At, line: line})
}

func (o *overlaps) end(ended *sim.Arrival, at des.Time) {
	turns := o.open[ended.Session]
	i := slices.IndexFunc(turns, func(t begun) bool { return t.at == ended.At })
	if i < 0 {
		return
	}
	if i > 0 { // the turn before has not ended
		o.count(&turns[i], ended.Session)
	}
	if i+1 < len(turns) && turns[i+1].at < at {
		o.count(&turns[i+1], ended.Session)
	}
	if turns = slices.Delete(turns, i, i+1); len(turns) == 0 {
		delete(o.open, ended.Session)
		return
	}
	o.open[ended.Session] = turns
}

func (o *overlaps) count(t *begun, session string) {
	if t.counted { // counted when another turn ended
		return
	}
	t.counted = true
	if o.n++; o.n == 1 || t.line < o.line {
		o.line, o.session = t.line, session
	}
}

func (o *overlaps) warning(file string) warn.Warning {
	return warn.New(warn.TraceContent,
		"%s of sessions arrived before the one before had ended; served as recorded: "+
			"the first in %s:%d, session %s", rows.Plural(o.n, "turn"), file, o.line,
		rows.Short(o.session)).About("sessions")
}

// further rejects further turns of sessions if arrival times are drawn, because drawn times do not
// wait for the end of the turn before. Only a single closed-loop client waits. Rows without content
// share nothing and may come in any order.
func (s *Stream) further(a *sim.Arrival) error {
	if a.Session == "" || a.Content == nil {
		return nil
	}
	if !s.seen[a.Session] {
		s.seen[a.Session] = true
		return nil
	}
	e := &rows.Error{File: s.rows.File.Name, Line: s.line, Key: s.rows.session, Value: a.Session,
		Problem: "a further turn, which would not wait for the one before; "}
	if s.rows.timed() {
		e.Problem += `use arrivals = "trace"`
	} else {
		e.Problem += "give the conversations as JSON"
	}
	e.Problem += ", or remove the column to have turns arrive as unrelated requests"
	return fmt.Errorf("workload.arrivals = %q: %w", s.spec.Arrivals, e)
}
