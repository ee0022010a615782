package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

// Do returns the results of the points in their order: kept results, and results of new runs by
// grid. Notes name damaged points. If a point fails or ctx is cancelled, Do returns the finished
// results with the error.
func (s *Store) Do(ctx context.Context, grid Grid, points []config.Point) (results []Result,
	notes []string, err error) {
	missing, notes, err := s.Missing(points, config.Until(ctx))
	if err != nil {
		return nil, notes, err
	}
	grid.Store = s
	_, runErr := grid.Do(ctx, longestFirst(missing))
	for _, p := range points {
		sum, kept, _, err := s.load(&p)
		if err != nil {
			return nil, notes, err
		}
		if kept {
			if grid.Again != nil && runErr == nil && len(sum.Paced) == 0 { // another command made it
				if err := s.Cliff(ctx, grid.Run, &p, &sum); err != nil {
					return results, notes, KeptWhenFull(err)
				}
			}
			sum.Warnings = append(sum.Warnings, p.Warnings...)
			results = append(results, Result{p, sum})
		}
	}
	return results, notes, KeptWhenFull(runErr)
}

// Missed returns the text that KeepMissed stored for a point; "" if there is none.
func (s *Store) Missed(p *config.Point) (string, error) {
	return s.word(p, ".missed")
}

// KeepMissed stores why a Watcher ended a run of the point, so that the run is not made again.
func (s *Store) KeepMissed(p *config.Point, why string) error {
	return s.keepWord(p, ".missed", why)
}

// KeepSame stores that the run of a point has the results of another run, given by its hash: the
// points differ only in limits that neither run reaches.
func (s *Store) KeepSame(p *config.Point, of string) error {
	return s.keepWord(p, ".same", of)
}

// Same returns the summary of the run that KeepSame stored for a point. ok is false if it stored
// none, or that run no longer exists.
func (s *Store) Same(p *config.Point) (sum sim.Summary, ok bool, err error) {
	of, err := s.word(p, ".same")
	if err != nil || of == "" {
		return sum, false, err
	}
	sum, ok, _, err = s.read(of, p.Name)
	return sum, ok, err
}

// KeepReach stores the distance of a point's run to its limits, and whether the run was made whole,
// before the run is finished: a continued command needs it.
func (s *Store) KeepReach(p *config.Point, reach *sim.Reach, whole bool) error {
	text, err := json.Marshal(keptReach{reach, whole})
	if err != nil {
		return err
	}
	return s.keepWord(p, ".reach", string(text))
}

// Reach returns the values that KeepReach stored for a point; nil if there are none.
func (s *Store) Reach(p *config.Point) (reach *sim.Reach, whole bool, err error) {
	text, err := s.word(p, ".reach")
	if err != nil || text == "" {
		return nil, false, err
	}
	var kept keptReach
	err = files.ParseJSON(filepath.Join(s.dir, "*.reach of "+p.Name), []byte(text), &kept)
	return kept.Reach, kept.Whole, err
}

type keptReach struct {
	Reach *sim.Reach `json:"reach"`
	Whole bool       `json:"whole"`
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

// Missing lists the points that are not stored completely. Notes name damaged ones.
func (s *Store) Missing(points []config.Point, watch config.Watch) (missing []config.Point,
	notes []string, err error) {
	for i, p := range points {
		if err := watch.At(i, len(points)); err != nil {
			return nil, notes, err
		}
		sum, kept, note, err := s.load(&p)
		if err != nil {
			return nil, notes, err
		}
		if note != "" {
			notes = append(notes, note)
		}
		if !kept || sum.Interrupted != "" {
			missing = append(missing, p)
		}
	}
	return missing, notes, nil
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
