package calibrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sparseserve/sparseserve/hw"
)

// Options of a calibration.
type Options struct {
	Out     string // profile to write; the CSV and the table of fits go to its folder
	Plan    Plan
	Fresh   bool  // measure again points that an earlier run kept
	PoolGiB int64 // largest pinned pool; 0: up to 32, and half of the host's free memory
	// Log gets what a user should know; Progress how many points are done.
	Log      func(string)
	Progress func(done, of int, what string)
}

// Machine describes the machine that a calibration runs on.
type Machine struct {
	Origin Origin // Plan and Date apart
	Limits Limits
	Bench  Bench
}

// ErrInterrupted reports an interrupted run; the samples so far are kept.
var ErrInterrupted = errors.New("the samples so far are kept; the same command resumes")

// CSVPath returns the path of a profile's samples.
func CSVPath(profile string) string {
	return strings.TrimSuffix(profile, filepath.Ext(profile)) + ".csv"
}

// PlotDir returns the folder of a profile's table of fits and plots.
func PlotDir(profile string) string {
	return strings.TrimSuffix(profile, filepath.Ext(profile))
}

// Run measures the points that an earlier run has not measured, fits all points, and writes the
// profile, the samples and the table of plots. If a probe fails, Run leaves out the samples of that
// probe, and returns the calibration with an error that names the reason.
func Run(ctx context.Context, m Machine, o Options, date string) (*Calibration, error) {
	m.Origin.Plan, m.Origin.Date = string(o.Plan), date
	path := CSVPath(o.Out)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if o.Fresh {
		if err := os.Rename(path, path+".old"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	j, note, err := openJournal(path, m.Origin)
	if err != nil {
		return nil, err
	}
	if note != "" {
		o.Log(note)
	}
	spent := map[string]time.Duration{}
	failed, err := measure(ctx, m, o, j, spent)
	if errors.Is(err, ErrInterrupted) {
		o.Log(spentText(spent))
	}
	j.forget(failed)
	if err = errors.Join(err, j.save()); err != nil {
		return nil, err
	}
	failures := failed.err()
	c, err := Fit(j.samples)
	if err != nil {
		return nil, errors.Join(failures, err)
	}
	c.Spent = spent
	if err := c.Write(o.Out); err != nil {
		return nil, errors.Join(failures, err)
	}
	return c, failures
}

// failures maps each failed probe to its error.
type failures map[string]error

// err joins all errors; nil if there are none.
func (f failures) err() error {
	var all []error
	for _, probe := range slices.Sorted(maps.Keys(f)) {
		all = append(all, f[probe])
	}
	return errors.Join(all...)
}

// measure measures the points that are missing in the journal. It logs and skips a failed probe and
// continues with the others. spent receives the time of each probe.
func measure(ctx context.Context, m Machine, o Options, j *journal,
	spent map[string]time.Duration) (failures, error) {
	rule := FullRule
	if o.Plan == Quick {
		rule = QuickRule
	}
	all := points(o.Plan, m.Limits)
	skipped, failed := map[string]bool{}, failures{}
	for i, p := range all {
		o.Progress(i, len(all), p.Probe)
		if j.done[p.Key()] || failed[p.Probe] != nil {
			continue
		}
		if ctx.Err() != nil {
			return failed, ErrInterrupted
		}
		began := time.Now()
		samples, err := measurePoint(ctx, m.Bench, rule.of(p.Probe), p)
		spent[p.Probe] += time.Since(began)
		switch {
		case errors.Is(err, ErrSkip):
			if !skipped[p.Probe] {
				skipped[p.Probe] = true
				o.Log(fmt.Sprintf("%s: %v", p.Probe, err))
			}
			continue
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return failed, ErrInterrupted
		case err != nil:
			failed[p.Probe] = fmt.Errorf("%s: %w", p.Key(), err)
			o.Log(fmt.Sprintf("%s failed and is left out: %v", p.Probe, failed[p.Probe]))
			continue
		}
		j.add(Record{p, samples})
		if i+1 == len(all) || all[i+1].Probe != p.Probe {
			if err := j.save(); err != nil {
				return failed, err
			}
		}
	}
	o.Progress(len(all), len(all), "")
	return failed, nil
}

// measurePoint measures one point.
func measurePoint(ctx context.Context, b Bench, rule Rule, p Point) ([]float64, error) {
	timed, err := b.Prepare(p)
	if err != nil {
		return nil, err
	}
	return rule.sample(ctx, timed)
}

// Write writes the profile and the table that its plots are drawn from.
func (c *Calibration) Write(out string) error {
	if err := c.Profile.Write(out, liveEngine); err != nil {
		return err
	}
	dir := PlotDir(out)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return c.writeFits(dir)
}

// Lasted lists the measuring time of each probe, in their order; empty after a refit.
func (c *Calibration) Lasted() string { return spentText(c.Spent) }

func spentText(spent map[string]time.Duration) string {
	var total time.Duration
	var parts []string
	for _, p := range Probes() {
		if t := spent[p.Name]; t > 0 {
			total += t
			parts = append(parts, fmt.Sprintf("%s %.1f", p.Name, t.Seconds()))
		}
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("measured in %.0f s: %s", total.Seconds(), strings.Join(parts, ", "))
}

// Flagged counts the models whose errors exceed the limits.
func Flagged(p *hw.Profile) int {
	n := 0
	for _, f := range p.Fits {
		if len(f.Flags) > 0 {
			n++
		}
	}
	return n
}
