package capacity

import (
	"fmt"

	"github.com/sparseserve/sparseserve/traces"
)

// loadSessions is the unit of rates at which sessions begin, each of several requests.
const loadSessions = "sessions/s"

// mostRequests is the most that workload.requests may be.
const mostRequests = 10_000_000

// turns describes the session lengths of a workload. A request without a session counts as a
// session of one turn.
type turns struct {
	mean float64 // E[M]
	// others is the mean number of other turns in the session of a turn: E[M (M-1)] / E[M]. It
	// exceeds E[M] - 1 if lengths vary, because most turns belong to long sessions.
	others float64
}

// RateUnit returns the unit of a workload's rate: sessions if its requests are turns that wait for
// the previous answer, else requests.
func RateUnit(w *traces.Spec) string {
	if hasTurns(w) {
		return loadSessions
	}
	return loadRate
}

func hasTurns(w *traces.Spec) bool {
	if w.FromFile() && w.Arrivals == traces.ArrivalsTrace {
		return false
	}
	has, _ := w.Traits() // a run returns the error
	return has.Turns
}

// turnsOf returns the session lengths of a workload: quantiles of the configured distribution at
// equal distance, or the first sessions of a file.
func turnsOf(w *traces.Spec) turns {
	const points = 1000
	switch {
	case !hasTurns(w):
		return turns{mean: 1}
	case w.FromFile():
		return turnsOfFile(*w, points)
	}
	lengths, err := traces.ParseLengths("sessions.turns", w.Turns)
	if err != nil { // a run returns that error
		return turns{mean: 1}
	}
	var all []int
	for i := range points {
		all = append(all, lengths.Quantile((float64(i)+0.5)/points))
	}
	return meanTurns(all)
}

// turnsOfFile reads the first sessions of a file to their ends.
func turnsOfFile(w traces.Spec, most int) turns {
	w.Requests = 0 // which would cut sessions off
	stream, err := traces.Open(w, 0)
	if err != nil {
		return turns{mean: 1}
	}
	defer stream.Close()
	var all []int
	for turns, err := range stream.Whole() {
		if err != nil {
			break
		}
		if all = append(all, len(turns)); len(all) == most {
			break
		}
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

// lasts returns the mean duration in seconds of the session of a turn, if a request takes e2e
// seconds.
func (t turns) lasts(w *traces.Spec, e2e float64) float64 {
	return t.others*(w.ThinkS+e2e) + e2e
}

// steadyAt returns the minimum number of requests for a run that lasts `turnovers` turnovers, if a
// request takes e2e seconds; 0 if it cannot be determined. If sessions begin at a given rate, turns
// reach the rate times E[M] only after sessions have been open for as long as the longest session.
// Of the turns of T seconds, a share of
//
//	R / 2T,  R = E[M (M-1)]/E[M] (think + E2E) + E2E
//
// is missing, so T = turnovers R. Without turns this is Little's law. A client of a closed loop has
// one session at a time, so sessions turn over as often as clients do.
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

// sessionRequests returns the minimum number of requests in a run of sessions, for any latency; 0
// for a workload without turns and for a run that cannot be extended.
func sessionRequests(w *traces.Spec) int {
	if !endless(w) || !hasTurns(w) {
		return 0
	}
	return steadyAt(w, 0)
}

// mostLoad returns the largest load up to most whose runs of sessions can be long enough.
func mostLoad(w *traces.Spec, load, most float64) float64 {
	if n := sessionRequests(w); n > 0 {
		return min(most, load*mostRequests/float64(n))
	}
	return most
}

// needsTooMany returns an error if the runs of a load of sessions would be too long.
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

// shortRun returns a warning if a run of sessions is too short for an answer, else "".
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
				"workload.think_s = %g: a session lasts %.3g s, and until then turns come slower "+
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
		"workload.think_s = %g: a session lasts %.3g s, and for as long turns come "+
		"slower than they will, so less may seem enough than is; from %d on they would do",
		key, requests, t.mean, w.ThinkS, t.lasts(w, e2e), n)
}
