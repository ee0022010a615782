package run

import (
	"context"
	"io"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Runner carries out one point. It returns soon after ctx is cancelled, with
// ctx's error. The grid fills in what names the run, and the wall time. A
// summary that says what interrupted it may come with an error.
type Runner func(ctx context.Context, p config.Point, sink Sink) (sim.Summary, error)

// Sink takes what a run reports on its way.
type Sink struct {
	Requests io.Writer // requests.csv, one row a finished request
	Steps    io.Writer // steps.csv; nil when not wanted
	Trace    io.Writer // trace.json; nil when not wanted
	Finished func()    // called once for every request that leaves the server
	// Watch may end a run before its end; nil does not.
	Watch Watcher
	// StepTime is a factor on the time of each step of the modelled device; 0: 1.
	StepTime float64
}

// Watcher sees a run go on.
type Watcher interface {
	// Ended takes each request that was served or rejected.
	Ended(*sim.RequestRecord)
	// Gap takes each time between two tokens of a request.
	Gap(des.Time)
	// Enough is asked after each step and each request that ended; an error ends the run.
	Enough() error
}

// Result is one finished point.
type Result struct {
	Point   config.Point
	Summary sim.Summary
}

// Summaries returns the summaries of the results, in order.
func Summaries(results []Result) []sim.Summary {
	out := make([]sim.Summary, len(results))
	for i, r := range results {
		out[i] = r.Summary
	}
	return out
}
