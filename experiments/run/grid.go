package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces"
)

// Grid runs the points of an experiment in parallel.
type Grid struct {
	Run     Runner
	Store   Keeper // nil keeps nothing
	Workers int    // 0 = one a core
	// Partial keeps the partial result of a run that an interrupt or an error of a live device ended.
	Partial bool
	// Finished is called for every request that leaves a server. Goroutines call it concurrently; it
	// may be nil.
	Finished func()
	// Missing, if not nil, is called by Store.Do with the points that it makes.
	Missing func([]config.Point)
	// Made, if not nil, is called for every point that has finished and is kept, concurrently from
	// goroutines.
	Made func(Result)
	// Again, if not nil, makes Grid repeat runs near a limit with other step times (Cliff). It is
	// called with the number of requests of the repeats, concurrently from goroutines.
	Again func(requests int)
}

// Requests counts the requests of points, for a progress bar (traces.Count).
func Requests(points []config.Point) int {
	specs := make([]traces.Spec, len(points))
	for i := range points {
		specs[i] = points[i].Workload
	}
	return traces.Count(specs...)
}

// Keeper stores the files of points.
type Keeper interface {
	Begin(*config.Point) (*RunFiles, error)
}

// Do runs all points and returns the finished ones in the order of points, for any number of
// workers. If a point fails or ctx is cancelled, no further point starts, and the finished results
// are returned with the error.
func (g *Grid) Do(ctx context.Context, points []config.Point) ([]Result, error) {
	workers := g.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	done := make([]*Result, len(points))
	for i, p := range points {
		if inner.Err() != nil {
			break
		}
		group.Go(func() error {
			if err := inner.Err(); err != nil {
				return err
			}
			sum, kept, err := g.point(ctx, inner, p)
			if kept {
				done[i] = &Result{p, sum}
			}
			if kept && g.Made != nil {
				g.Made(*done[i])
			}
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			return nil
		})
	}
	err := group.Wait()
	if cause := ctx.Err(); cause != nil && (err == nil || errors.Is(err, cause)) {
		err = cause // not the name of whichever point noticed first
	}
	var results []Result
	for _, r := range done {
		if r != nil {
			results = append(results, *r)
		}
	}
	return results, err
}

// point runs one point and reports whether it is stored. outer ends when all points have to end,
// ctx also when one has failed.
func (g *Grid) point(outer, ctx context.Context, p config.Point) (sum metrics.Summary, kept bool,
	err error) {
	var files *RunFiles
	if g.Store != nil {
		if files, err = g.Store.Begin(&p); err != nil {
			return sum, false, err
		}
	}
	defer files.discard()
	sink := files.sink()
	if sink.Finished = g.Finished; sink.Finished == nil {
		sink.Finished = func() {}
	}

	sum, runErr := g.Run(ctx, p, sink)
	part := g.Partial && sum.Interrupted != "" && sum.Completed > 0 &&
		(outer.Err() != nil || sum.Live != nil)
	if runErr != nil && !part {
		return sum, false, runErr
	}
	if g.Again != nil && NearLimit(&sum) {
		g.Again(len(paces) * sum.Requests)
		if err := Cliff(ctx, g.Run, &p, &sum, sink.Finished); err != nil {
			return sum, false, err
		}
	}
	sum.Name, sum.System, sum.Model, sum.GPU = p.Name, p.System.Name, p.Model, p.GPU
	if sum.Replicas > 0 {
		sum.Router = p.Fleet.Router
	}
	sum.Seed, sum.Rate, sum.Concurrency = p.Seed, p.Workload.MeanRate(), p.Workload.Concurrency
	if sum.Warnings == nil {
		sum.Warnings = []warn.Warning{} // an empty list in JSON
	}
	err = files.commit(&sum)
	return sum, err == nil, errors.Join(runErr, err)
}
