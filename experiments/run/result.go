package run

import (
	"context"
	"io"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Runner carries out one point. It returns soon after ctx is cancelled, with ctx's error. The grid
// fills in the run's name and wall time. A summary with Interrupted set may come with an error.
type Runner func(ctx context.Context, p config.Point, sink Sink) (metrics.Summary, error)

// Sink receives the outputs of a run while it runs.
type Sink struct {
	Requests io.Writer // requests.csv, one row a finished request
	Steps    io.Writer // steps.csv; nil when not wanted
	Trace    io.Writer // trace.json; nil when not wanted
	Finished func()    // called once for every request that leaves the server
	// Watch may end a run early; nil does not.
	Watch Watcher
	// StepTime is a factor on the step times of the modelled device; 0 means 1.
	StepTime float64
}

// Watcher observes a run.
type Watcher interface {
	// Ended receives each request that was served or rejected.
	Ended(*metrics.Request)
	// Enough is called after each step and each request that ended; an error ends the run.
	Enough() error
}

// Result is one finished point.
type Result struct {
	Point   config.Point
	Summary metrics.Summary
}

// Summaries returns the summaries of the results, in order.
func Summaries(results []Result) []metrics.Summary {
	out := make([]metrics.Summary, len(results))
	for i, r := range results {
		out[i] = r.Summary
	}
	return out
}
