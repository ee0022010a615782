package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// Do returns the results of the points in their order: kept results, and results of new runs by
// grid. If a point fails or ctx is cancelled, Do returns the finished results with the error.
func (s *Store) Do(ctx context.Context, grid Grid, points []config.Point) (results []Result,
	err error) {
	missing, err := s.Missing(ctx, points, grid.Again != nil)
	if err != nil {
		return nil, err
	}
	if grid.Missing != nil {
		grid.Missing(missing)
	}
	grid.Store = s
	_, runErr := grid.Do(ctx, longestFirst(missing))
	for _, p := range points {
		sum, kept, err := s.load(&p)
		if err != nil {
			return nil, err
		}
		if kept {
			sum.Warnings = append(sum.Warnings, p.Warnings...)
			results = append(results, Result{p, sum})
		}
	}
	return results, KeptWhenFull(runErr)
}

// KeptWhenFull adds a remedy to the error of a full disk or quota.
func KeptWhenFull(err error) error {
	if IsFull(err) {
		return fmt.Errorf("%w; what is finished is kept: make room and give the same command again", err)
	}
	return err
}

// IsFull reports whether an error means a full disk or quota.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		errors.Is(err, syscall.EFBIG)
}

// Missing lists the points that are not stored completely. With again, a run near a limit that
// another command stored without its repeats is missing too.
func (s *Store) Missing(ctx context.Context, points []config.Point, again bool) (
	missing []config.Point, err error) {
	for _, p := range points {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sum, kept, err := s.load(&p)
		if err != nil {
			return nil, err
		}
		if !kept || sum.Interrupted != "" || again && NearLimit(&sum) && len(sum.Paced) == 0 {
			missing = append(missing, p)
		}
	}
	return missing, nil
}

// longestFirst orders points by estimated run time, so that no long run is left for the end. Caches
// cost the most, more still under overload.
func longestFirst(points []config.Point) []config.Point {
	guess := func(p *config.Point) float64 {
		cost := float64(p.Workload.Requests)
		if cost == 0 { // all of a trace
			cost = 1000
		}
		if p.System.Offload.On {
			cost *= 10
		}
		if p.System.Simulation.Heads == "full" {
			cost *= 10
		}
		return cost * (1 + p.Workload.Rate)
	}
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b config.Point) int {
		return cmp.Compare(guess(&b), guess(&a))
	})
	return points
}
