package validate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/traces"
)

// againFolder holds live runs that are made once more, until it is known which of the
// two is kept.
const againFolder = "again"

// disturbedFile is in the folder of a live run that was made twice, and says what
// disturbed the steadier of the two.
const disturbedFile = "disturbed.json"

// disturbance is what disturbed a live run. Whether its times agree with the model's
// does not count, only whether they agree with each other.
type disturbance struct {
	Slow     float64 `json:"slow"`      // alikeMetric; 0: too few steps to judge
	StalledS float64 `json:"stalled_s"` // stalledMetric
}

func (d *disturbance) any() bool { return d.Slow > DisturbedAbove || d.StalledS > 0 }

// much orders disturbances. A second that a run stood still counts as much as slow
// steps that take a median longer. Too few steps are no sign of an undisturbed run.
func (d *disturbance) much() float64 {
	slow := d.Slow
	if slow == 0 {
		slow = DisturbedAbove
	}
	return slow - 1 + d.StalledS
}

func (d *disturbance) String() string {
	var what []string
	if d.StalledS > 0 {
		what = append(what, fmt.Sprintf("stood still for %.2g s within steps", d.StalledS))
	}
	if d.Slow > 0 {
		what = append(what, fmt.Sprintf("one in 20 of its steps of the same work takes %.2f times "+
			"their median", d.Slow))
	}
	return strings.Join(what, ", ")
}

// disturbanceOf finds what disturbed a kept live run; nothing where its steps were not kept.
func disturbanceOf(p *config.SweepPoint, dir string) (d disturbance, err error) {
	made, err := run.ReadManifest(dir)
	if err != nil || !hasCalls(&made) {
		return d, err
	}
	table, err := priced(&p.Point, dir)
	if err != nil {
		return d, err
	}
	steps, err := readSteps(dir, table)
	if err != nil {
		return d, err
	}
	d.Slow, _ = alike(steps)
	d.StalledS = stalls(steps)
	return d, nil
}

func (d *disturbance) write(dir string) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return run.WriteFile(filepath.Join(dir, disturbedFile), append(text, '\n'))
}

// toRemake returns the folder of a live run that something disturbed and that has been
// made once, and what did; nil for others, and for those that another process makes.
func toRemake(store *run.PointStore, p *config.SweepPoint) (dir string, by *disturbance,
	err error) {
	dir, _, err = store.Find(&p.Point)
	if err != nil || dir == "" {
		return "", nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, disturbedFile)); err == nil {
		return "", nil, nil // twice
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	d, err := disturbanceOf(p, dir)
	if err != nil || !d.any() {
		return "", nil, err
	}
	return dir, &d, nil
}

// again makes the disturbed runs once more, worst first, and keeps the steadier of
// the two. What disturbs a machine lasts for longer than a run, so that these come
// after all others. One that fails costs nothing but its time; after two of its own in a
// row it is the machine's fault.
func (v *Validation) again(ctx context.Context, grid run.Grid, store *run.PointStore) error {
	var points []*config.SweepPoint
	by := map[*config.SweepPoint]*disturbance{}
	for i := range v.points {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := &v.points[i]
		_, d, err := toRemake(store, p)
		if err != nil {
			return err
		}
		if d != nil {
			points, by[p] = append(points, p), d
		}
	}
	slices.SortStableFunc(points, func(a, b *config.SweepPoint) int {
		return cmp.Compare(by[b].much(), by[a].much())
	})
	second := store.In(filepath.Join(v.Dir, againFolder))
	grid.Store = second
	if len(points) > 0 {
		if err := os.MkdirAll(second.Dir(), 0o755); err != nil {
			return err
		}
		defer os.Remove(second.Dir()) // if nobody else is at it
	}
	inARow := 0
	for _, p := range points {
		v.Planned(traces.Count(p.Workload))
		what, err := v.remake(ctx, &grid, store, second, p)
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf(
				"%w; %s was disturbed and is kept as it was: the same command makes it once more", err, p.Label)
		}
		switch {
		case err == nil && what != "": // else another process has made it
			inARow = 0
		case err != nil:
			inARow++
			what = fmt.Sprintf("%s was disturbed (%v) and is kept as it was: %v", p.Label, by[p], err)
		}
		if what != "" {
			v.notes = append(v.notes, what)
		}
		if inARow == 2 {
			break
		}
	}
	return nil
}

// remake makes a run once more, unless another process does or has done so since, keeps
// the steadier of the two, and says which.
func (v *Validation) remake(ctx context.Context, grid *run.Grid, store, second *run.PointStore,
	p *config.SweepPoint) (what string, err error) {
	claim, err := store.Claim(&p.Point)
	if err != nil || claim == nil {
		return "", err
	}
	defer func() { err = errors.Join(err, claim()) }()
	dir, by, err := toRemake(store, p)
	if err != nil || by == nil {
		return "", err
	}
	if _, err := grid.Do(ctx, []config.Point{p.Point}); err != nil {
		return "", err
	}
	made, note, err := second.Find(&p.Point)
	if err != nil || made == "" {
		return "", errors.Join(err, fmt.Errorf("%s: is not kept: %s", second.Dir(), note))
	}
	now, err := disturbanceOf(p, made)
	if err != nil {
		return "", err
	}
	what = fmt.Sprintf("%s was disturbed (%v) and made once more; ", p.Label, by)
	if now.much() >= by.much() {
		return what + "the second was no steadier", errors.Join(by.write(dir), os.RemoveAll(made))
	}
	how := "which nothing disturbed"
	if now.any() {
		how = fmt.Sprintf("though %v", &now)
		err = now.write(made)
	}
	what += "the second is kept, " + how
	old := filepath.Join(store.Dir(), "."+filepath.Base(dir)+run.Unfinished)
	return what, errors.Join(err, os.RemoveAll(old), os.Rename(dir, old), os.Rename(made, dir),
		os.RemoveAll(old))
}

// adopt cleans up after a process that was killed as it made runs once more: one that
// had just given up the first for the second has the second, others have the first.
func adopt(store *run.PointStore, again string) error {
	entries, err := os.ReadDir(again)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(again, e.Name())
		made, damage := run.ReadManifest(path)
		if damage != nil {
			made.Hash = run.HashOfUnfinished(path)
		}
		release, lockErr := store.ClaimHash(made.Hash)
		if release == nil { // it is being made
			err = errors.Join(err, lockErr)
			continue
		}
		first, _, findErr := store.FindHash(made.Hash, &config.Point{Name: made.Name})
		if err = errors.Join(err, findErr); damage == nil && findErr == nil && first == "" {
			err = errors.Join(err, os.Rename(path, filepath.Join(store.Dir(), e.Name())))
		} else {
			err = errors.Join(err, os.RemoveAll(path))
		}
		err = errors.Join(err, release())
	}
	return err
}
