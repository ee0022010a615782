package experiments

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
)

// disturbedFile is in the folder of a live run that something disturbed, and says what.
const disturbedFile = "disturbed.json"

// disturbance is what disturbed a live run. Whether its times agree with the model's
// does not count, only whether they agree with each other.
type disturbance struct {
	Slow     float64 `json:"slow"`      // alikeMetric; 0: too few steps to tell
	StalledS float64 `json:"stalled_s"` // stalledMetric
	Again    bool    `json:"again"`     // the run has been made twice
}

func (d *disturbance) any() bool { return d.Slow > DisturbedAbove || d.StalledS > 0 }

// worse orders disturbances: who stood still for longer, then whose slow steps take longer.
func (d *disturbance) worse(o *disturbance) int {
	return cmp.Or(cmp.Compare(d.StalledS, o.StalledS), cmp.Compare(d.Slow, o.Slow))
}

func (d *disturbance) String() string {
	var what []string
	if d.StalledS > 0 {
		what = append(what, fmt.Sprintf("stood still for %.2g s within steps", d.StalledS))
	}
	if d.Slow > 0 {
		what = append(what, fmt.Sprintf("one in 20 of its steps of the same work takes %.2f times their median", d.Slow))
	}
	return strings.Join(what, ", ")
}

// disturbanceOf finds what disturbed a kept live run.
func disturbanceOf(p *SweepPoint, dir string) (d disturbance, err error) {
	table, err := priced(p, dir)
	if err != nil {
		return d, err
	}
	steps, err := readSteps(table)
	if err != nil {
		return d, err
	}
	d.Slow, _ = alike(steps)
	d.StalledS = stalls(steps)
	return d, nil
}

// note writes down what disturbed a live run, if anything.
func note(p *SweepPoint, dir string, again bool) error {
	d, err := disturbanceOf(p, dir)
	if err != nil || !d.any() {
		return err
	}
	d.Again = again
	return d.write(dir)
}

func (d *disturbance) write(dir string) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, disturbedFile), append(text, '\n'))
}

// readDisturbance returns nil for a run that nothing disturbed.
func readDisturbance(dir string) (*disturbance, error) {
	path := filepath.Join(dir, disturbedFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var d disturbance
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &d, nil
}

// again makes the disturbed runs once more, worst first, and keeps the steadier of
// the two. What disturbs a machine lasts for longer than a run, so that these come
// after all others.
func (v *Validation) again(ctx context.Context, grid *Grid, store *validationStore) error {
	var points []*SweepPoint
	worst := map[*SweepPoint]*disturbance{}
	for i := range v.points {
		p := &v.points[i]
		_, by, err := toRemake(store, p)
		if err != nil {
			return err
		}
		if by != nil {
			points, worst[p] = append(points, p), by
		}
	}
	slices.SortStableFunc(points, func(a, b *SweepPoint) int { return worst[b].worse(worst[a]) })
	for _, p := range points {
		v.Planned(p.Workload.Requests)
	}
	for _, p := range points {
		note, err := v.claimRemake(ctx, grid, store, p)
		switch {
		case err != nil && ctx.Err() != nil:
			return fmt.Errorf("%w; all live runs are kept, but %s was disturbed: the same command makes it once more", err, p.Label)
		case err != nil:
			return fmt.Errorf("live run of %s once more: %w; the first one is kept", p.Label, err)
		case note != "":
			v.notes = append(v.notes, note)
		}
	}
	return nil
}

// toRemake returns the folder of a live run that something disturbed and that has been
// made once, and what did; nil for others, and for those that another process makes.
func toRemake(store *validationStore, p *SweepPoint) (dir string, by *disturbance, err error) {
	dir, _, err = store.find(&p.Point)
	if err != nil || dir == "" {
		return "", nil, err
	}
	if by, err = readDisturbance(dir); by != nil && by.Again {
		by = nil
	}
	return dir, by, err
}

// claimRemake makes a run once more unless another process does or has done so since,
// and says what came of it.
func (v *Validation) claimRemake(ctx context.Context, grid *Grid, store *validationStore, p *SweepPoint) (note string, err error) {
	claim, err := store.claim(&p.Point)
	if err != nil || claim == nil {
		return "", err
	}
	defer func() { err = errors.Join(err, claim()) }()
	dir, by, err := toRemake(store, p)
	if err != nil || by == nil {
		return "", err
	}
	was := by.String()
	kept, err := v.remake(ctx, grid, store, p, dir, by)
	return fmt.Sprintf("%s was disturbed (%s) and made once more; %s", p.Label, was, kept), err
}

// remake makes a run once more and leaves the steadier of the two in its folder.
func (v *Validation) remake(ctx context.Context, grid *Grid, store *validationStore, p *SweepPoint, dir string, by *disturbance) (kept string, err error) {
	first := filepath.Join(store.dir, "."+filepath.Base(dir)+firstSuffix)
	if err := os.Rename(dir, first); err != nil {
		return "", err
	}
	restore := func() error { return errors.Join(os.RemoveAll(dir), os.Rename(first, dir)) }
	if _, err := grid.Do(ctx, []Point{p.Point}); err != nil {
		return "", errors.Join(err, restore())
	}
	now, err := disturbanceOf(p, dir)
	if err != nil {
		return "", errors.Join(err, restore())
	}
	by.Again, now.Again = true, true
	if now.worse(by) >= 0 {
		return "the second was no steadier", errors.Join(restore(), by.write(dir))
	}
	if now.any() {
		return fmt.Sprintf("the second is kept (%v)", &now), errors.Join(now.write(dir), os.RemoveAll(first))
	}
	return "the second is kept, which nothing disturbed", os.RemoveAll(first)
}

// firstSuffix ends the name of a run's folder while it is made once more.
const firstSuffix = ".first"

// restoreFirst gives a run its folder back that a killed process was making once more,
// unless the second one is there: that stays.
func restoreFirst(first string) error {
	folder := filepath.Join(filepath.Dir(first), strings.TrimPrefix(strings.TrimSuffix(filepath.Base(first), firstSuffix), "."))
	if _, err := os.Stat(folder); err == nil {
		return os.RemoveAll(first)
	}
	return os.Rename(first, folder)
}
