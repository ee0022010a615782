package records

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// load is the arrival process of a benchmark's client, for results without times.
type load struct {
	Rate     limit   `json:"request_rate"`    // requests/s of Poisson arrivals
	Clients  limit   `json:"max_concurrency"` // requests at a time
	Duration float64 `json:"duration"`        // seconds from the first request to the last token
}

// limit is a number; 0 if it is null, missing or infinite.
type limit float64

func (l *limit) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	if err != nil || v < 0 || v > 1e9 {
		v = 0
	}
	*l = limit(v)
	return nil
}

// times makes the time of each request in seconds from how long the requests took, in the order in
// which they were sent. With clients a request waits until an earlier one has ended. Poisson gaps
// are drawn with a fixed seed, and stretched so that the last request ends with the record.
func (l load) times(took []float64) []float64 {
	at := make([]float64, len(took))
	if len(at) == 0 {
		return at
	}
	if l.Rate > 0 {
		random, now := des.Rand(1, "record"), 0.0
		for i := range at {
			at[i] = now
			now += random.ExpFloat64() / float64(l.Rate)
		}
		if last := len(at) - 1; l.Duration > took[last] && at[last] > 0 {
			stretch := (l.Duration - took[last]) / at[last]
			for i := range at {
				at[i] *= stretch
			}
		}
	}
	if l.Clients > 0 {
		free := make([]float64, max(1, int(min(l.Clients, limit(len(at)))))) // ends of their requests
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
// took no time.
func (m *Record) made(l load, all []sent) {
	took := make([]float64, len(all))
	for i := range all {
		took[i] = all[i].e2e
	}
	for i, at := range l.times(took) {
		all[i].at = des.FromSeconds(at)
	}
	m.note("The record has no send times. They are made from its load (%s) and the duration of each "+
		"request.", l)
}

// String describes the load.
func (l load) String() string {
	var from []string
	if l.Rate > 0 {
		from = append(from, fmt.Sprintf("Poisson arrivals at %g requests/s", float64(l.Rate)))
	}
	if l.Clients > 0 {
		from = append(from, fmt.Sprintf("%g requests at a time", float64(l.Clients)))
	}
	if from == nil {
		return "all requests sent at once"
	}
	return strings.Join(from, ", ")
}
