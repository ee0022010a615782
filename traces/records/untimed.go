package records

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// load is the arrival process of a benchmark's client, for results without times.
type load struct {
	rate     float64 // requests/s of Poisson arrivals; 0: no limit
	clients  float64 // requests at a time; 0: no limit
	duration float64 // seconds from the first request to the last token
	fitted   float64 // requests/s that the duration needs, if that is far from rate; set by times
}

// loadOf returns the load that a result of vLLM or SGLang names.
func loadOf(run rows.Record) (load, error) {
	duration, ok := number(run, "duration")
	if text := run.Text("duration"); !ok && text != "" {
		return load{}, rows.Wrong("duration", text, "want a number, in seconds")
	}
	return load{rate: limit(run, "request_rate"), clients: limit(run, "max_concurrency"),
		duration: duration}, nil
}

// limit returns a limit of a load; 0 if it is null, missing or infinite.
func limit(run rows.Record, name string) float64 {
	v, _ := number(run, name)
	if v < 0 || v > 1e9 {
		return 0
	}
	return v
}

// times makes the time of each request in seconds from how long the requests took, in the order in
// which they were sent. With clients a request waits until an earlier one has ended. Poisson gaps
// are drawn with a fixed seed, and stretched so that the last request ends with the record.
func (l *load) times(took []float64) []float64 {
	at := make([]float64, len(took))
	if len(at) == 0 {
		return at
	}
	if l.rate > 0 {
		random, now := des.Rand(1, "record"), 0.0
		for i := range at {
			at[i] = now
			now += random.ExpFloat64() / l.rate
		}
		if last := len(at) - 1; l.duration > took[last] && at[last] > 0 {
			stretch := (l.duration - took[last]) / at[last]
			for i := range at {
				at[i] *= stretch
			}
			if rate := float64(last) / at[last]; rate < 0.75*l.rate || rate > 1.5*l.rate {
				l.fitted = rate
			}
		}
	}
	if l.clients > 0 {
		free := make([]float64, max(1, int(min(l.clients, float64(len(at)))))) // ends of their requests
		for i := range at {
			next := slices.Index(free, slices.Min(free))
			at[i] = max(at[i], free[next])
			free[next] = at[i] + took[i]
		}
	}
	for i := range at {
		at[i] = min(at[i], rows.Latest.Seconds())
	}
	return at
}

// made sets the times of requests that have none from the load and how long they took; a failed one
// took the time to its last token, if the record has that.
func (m *Record) made(l load, all []sent) {
	took := make([]float64, len(all))
	for i := range all {
		took[i] = all[i].E2E
	}
	for i, at := range l.times(took) {
		all[i].At = des.FromSeconds(at)
	}
	m.note("The record has no send times. They are made from its load (%s) and the duration of each "+
		"request.", &l)
}

// String describes the load.
func (l *load) String() string {
	var from []string
	if l.rate > 0 {
		from = append(from, fmt.Sprintf("Poisson arrivals at %g requests/s", l.rate))
	}
	if l.fitted > 0 {
		from = append(from, fmt.Sprintf("changed to %.2g requests/s by the measured duration", l.fitted))
	}
	if l.clients > 0 {
		from = append(from, fmt.Sprintf("%g requests at a time", l.clients))
	}
	if from == nil {
		return "all requests sent at once"
	}
	return strings.Join(from, ", ")
}
