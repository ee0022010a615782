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

// Do returns the results of the points in their order: of those that are kept
// from before, and of the others, which grid runs. Notes say which points were
// kept but damaged. When a point fails, or ctx is cancelled, those that are
// finished are returned with the error.
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

// Missed returns what KeepMissed kept of a point; empty where there is nothing.
func (s *Store) Missed(p *config.Point) (string, error) {
	return s.word(p, ".missed")
}

// KeepMissed keeps why a Watcher ended a run of the point, so that it is not made again.
func (s *Store) KeepMissed(p *config.Point, why string) error {
	return s.keepWord(p, ".missed", why)
}

// KeepSame keeps that the run of a point is that of another, whose hash is given: by what differs
// between them neither is limited.
func (s *Store) KeepSame(p *config.Point, of string) error {
	return s.keepWord(p, ".same", of)
}

// Same returns the summary of the run that KeepSame named for a point; ok is false where it named
// none, or that run is no longer there.
func (s *Store) Same(p *config.Point) (sum sim.Summary, ok bool, err error) {
	of, err := s.word(p, ".same")
	if err != nil || of == "" {
		return sum, false, err
	}
	sum, ok, _, err = s.read(of, p.Name)
	return sum, ok, err
}

// KeepReach keeps how near the run of a point came to its limits, and whether it could have ended
// early, before it is finished: a command that goes on has to know it.
func (s *Store) KeepReach(p *config.Point, reach *sim.Reach, whole bool) error {
	text, err := json.Marshal(keptReach{reach, whole})
	if err != nil {
		return err
	}
	return s.keepWord(p, ".reach", string(text))
}

// Reach returns what KeepReach kept of a point; nil where there is nothing.
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

// KeptWhenFull adds to the error of a disk or a quota that is full what to do
// about it.
func KeptWhenFull(err error) error {
	if IsFull(err) {
		return fmt.Errorf("%w; what is finished is kept: make room and give the same command again", err)
	}
	return err
}

// IsFull says whether an error is that of a disk or a quota that is full.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		errors.Is(err, syscall.EFBIG)
}

// Missing lists the points that are not kept, or in part only. Notes say which are kept but
// damaged.
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

// longestFirst orders points by a guess at their time, so that no long one is
// left for the end. Caches cost the most, and overloaded ones more still.
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
