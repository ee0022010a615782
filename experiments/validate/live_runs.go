package validate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// liveRuns makes the missing live runs and returns the folders of all.
func (v *Validation) liveRuns(ctx context.Context) ([]string, error) {
	if !v.Kept {
		var err error
		if v.device, err = v.Live.Device(); err != nil {
			return nil, err
		}
	}
	store, err := v.openLive()
	if err != nil {
		return nil, err
	}
	var missing []config.Point
	for i := range v.points {
		p := &v.points[i]
		if err := store.find(p); err != nil {
			return nil, err
		}
		if store.places[p.Hash] == "" {
			missing = append(missing, *p)
		}
	}
	if v.Kept && len(missing) > 0 {
		if v.device, err = v.Live.Device(); err != nil {
			if err := v.without(missing, err); err != nil {
				return nil, err
			}
			missing = nil
		}
	}
	v.Planned(run.Requests(missing))
	simulate := func(ctx context.Context, p config.Point, sink run.Sink) (sum metrics.Summary,
		err error) {
		sum, store.steps, err = v.Live.Shadowed(ctx, p, sink)
		return sum, err
	}
	grid := run.Grid{Run: simulate, Store: store, Workers: 1, Finished: v.Finished}
	kept := len(v.points) - len(missing)
	var failed []error
	for i, inARow := 0, 0; i < len(missing) && inARow < 2; i++ { // after two the machine is at fault
		_, err := grid.Do(ctx, []config.Point{missing[i]})
		switch {
		case err == nil:
			kept, inARow = kept+1, 0
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w; %d of %d live runs are kept: the same command runs the rest", err,
				kept, len(v.points))
		default:
			failed = append(failed, fmt.Errorf("live run of %s: %w", missing[i].Label(), err))
			inARow++
		}
	}
	if len(failed) > 0 {
		return nil, fmt.Errorf("%w\n%d of %d live runs are kept in %s", errors.Join(failed...), kept,
			len(v.points), store.dir)
	}
	var places []string
	for i := range v.points {
		places = append(places, store.places[v.points[i].Hash])
	}
	return places, nil
}

// without continues with the points whose live runs are kept, if this machine lacks the library for
// making the missing ones.
func (v *Validation) without(missing []config.Point, why error) error {
	what := fmt.Sprintf("%s: %d of %d live runs are not kept, the first is %s", v.Dir, len(missing),
		len(v.points), missing[0].Label())
	if len(missing) == len(v.points) || !errors.Is(why, cuda.ErrNoLibrary) {
		return fmt.Errorf("%s: %w", what, why)
	}
	v.notes = append(v.notes, fmt.Sprintf("%s; those are left out: %v", what, why))
	v.points = slices.DeleteFunc(v.points, func(p config.Point) bool {
		return slices.ContainsFunc(missing, func(m config.Point) bool { return m.Label() == p.Label() })
	})
	return nil
}
