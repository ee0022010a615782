package capacity

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces"
)

// loadSessions is the unit of rates at which sessions begin, each of several requests.
const loadSessions = "sessions/s"

// mostRequests is the most that workload.requests may be.
const mostRequests = 10_000_000

// turns says how long the sessions of a workload are. A request without a session is one of a
// single turn.
type turns struct {
	mean float64 // E[M]
	// others is how many other turns the session of a turn has: E[M (M-1)] / E[M], more than
	// E[M] - 1 where lengths differ, as most turns are of long sessions.
	others float64
}

// RateUnit is what a workload's rate counts: requests or, where these are turns that wait for the
// answer before them, sessions.
func RateUnit(w *traces.Spec) string {
	if hasTurns(w) {
		return loadSessions
	}
	return loadRate
}

func hasTurns(w *traces.Spec) bool {
	switch {
	case w.Trace == traces.Sessions:
		return true
	case !w.FromFile() || w.Arrivals == traces.ArrivalsTrace:
		return false
	}
	stream, err := traces.Open(*w, 0)
	if err != nil { // a run says so
		return false
	}
	defer stream.Close()
	return stream.HasTurns()
}

// turnsOf returns the lengths of a workload's sessions: those that it draws, from quantiles at
// equal distance, or those of the first of a file.
func turnsOf(w *traces.Spec) turns {
	const points = 1000
	switch {
	case !hasTurns(w):
		return turns{mean: 1}
	case w.FromFile():
		return turnsOfFile(*w, points)
	}
	lengths, err := traces.ParseLengths("workload.turns", w.Turns)
	if err != nil { // a run says so
		return turns{mean: 1}
	}
	var all []int
	for i := range points {
		all = append(all, lengths.Quantile((float64(i)+0.5)/points))
	}
	return meanTurns(all)
}

// turnsOfFile reads the first sessions of a file, each to its end.
func turnsOfFile(w traces.Spec, most int) turns {
	w.Requests = 0 // which would cut sessions off
	stream, err := traces.Open(w, 0)
	if err != nil {
		return turns{mean: 1}
	}
	defer stream.Close()
	var all []int
	for len(all) < most {
		a, ok, err := stream.Next()
		if err != nil || !ok {
			break
		}
		n := 0
		for more := ok; more; n++ {
			if a, more, err = stream.Follow(a, des.Time(0), false); err != nil {
				break
			}
		}
		all = append(all, n)
	}
	return meanTurns(all)
}

func meanTurns(all []int) turns {
	sum, squares := 0.0, 0.0
	for _, n := range all {
		sum, squares = sum+float64(n), squares+float64(n)*float64(n)
	}
	if sum == 0 {
		return turns{mean: 1}
	}
	return turns{sum / float64(len(all)), squares/sum - 1}
}

// lasts is how long the session of a turn lasts on average, in seconds, where an answer takes e2e.
func (t turns) lasts(w *traces.Spec, e2e float64) float64 {
	return t.others*(w.ThinkS+e2e) + e2e
}

// steadyAt is how many requests a run has at least to be turnovers long, where an answer takes e2e
// seconds; 0 where that cannot be said. Sessions that begin at a rate bring turns at the rate
// times E[M] only once they have been open for as long as the longest: of the turns of T seconds, a
// share of
//
//	R / 2T,  R = E[M (M-1)]/E[M] (think + E2E) + E2E
//
// is missing, so T = turnovers R. Without turns that is Little's law. A client of a closed loop has
// a session at a time, which turns over as it does.
func steadyAt(w *traces.Spec, e2e float64) int {
	t := turnsOf(w)
	switch _, unit := loadOf(w); unit {
	case loadClients:
		return roundUp(turnovers * float64(w.Concurrency) * t.mean)
	case loadRate:
		return roundUp(turnovers * w.Rate * t.mean * t.lasts(w, e2e))
	}
	return 0
}

// sessionRequests is how many requests a run of sessions has at least, however soon they are
// answered; 0 of a workload without turns, and where a run cannot be made longer.
func sessionRequests(w *traces.Spec) int {
	if !endless(w) || !hasTurns(w) {
		return 0
	}
	return steadyAt(w, 0)
}

// mostLoad is the largest load, of those up to most, whose runs of sessions can be long enough.
func mostLoad(w *traces.Spec, load, most float64) float64 {
	if n := sessionRequests(w); n > 0 {
		return min(most, load*mostRequests/float64(n))
	}
	return most
}

// needsTooMany is the error of a load of sessions whose runs would be too long.
func needsTooMany(w *traces.Spec, key string) error {
	n := sessionRequests(w)
	if n <= mostRequests {
		return nil
	}
	load, unit := loadOf(w)
	if unit == loadRate {
		unit = loadSessions
	}
	return fmt.Errorf("%s = %g: at %[2]g %s, sessions of %.3g turns with workload.think_s = %g need "+
		"runs of %d requests until turns come as fast as they will, more than %d; plan for a part of "+
		"the load, or set a smaller workload.think_s", key, load, unit, turnsOf(w).mean, w.ThinkS, n,
		mostRequests)
}

// shortRun says that a run of sessions is too short for what an answer takes, or "".
func shortRun(w *traces.Spec, requests int, e2e float64) string {
	if !hasTurns(w) {
		return ""
	}
	t, n := turnsOf(w), steadyAt(w, e2e)
	if seconds := 0.0; len(w.Stages) > 0 && w.Requests == 0 {
		for _, stage := range w.Stages {
			seconds += stage[0]
		}
		if seconds < turnovers*t.lasts(w, e2e) {
			return fmt.Sprintf("workload.stages: %g s are short for sessions of %.3g turns and "+
				"workload.think_s = %g: a turn is of a session of %.3g s, and until then turns come slower "+
				"than they will", seconds, t.mean, w.ThinkS, t.lasts(w, e2e))
		}
	}
	if n <= requests {
		return ""
	}
	key := "workload.requests"
	if w.FromFile() {
		key = "workload.trace"
	} else if requests >= mostRequests { // which the rate would have to be lower for
		key = "workload.rate"
	}
	return fmt.Sprintf("%s: %d requests are too few for sessions of %.3g turns and "+
		"workload.think_s = %g: a turn is of a session of %.3g s, and for as long turns come "+
		"slower than they will, so less may seem enough than is; from %d on they would do",
		key, requests, t.mean, w.ThinkS, t.lasts(w, e2e), n)
}
