package validate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
)

// Repeat compares the live runs of a folder with the same runs in another folder, repeated on a
// card of the same name. Simulated holds the second run. No model can predict the difference
// between two live runs of one program. Notes name runs that only one folder has, and second runs
// of another program.
func Repeat(dir, again string) (report *Report, notes []string, err error) {
	folders := map[string][]fs.DirEntry{}
	for _, d := range []string{dir, again} {
		if folders[d], err = os.ReadDir(filepath.Join(d, liveFolder)); err != nil {
			return nil, nil, fmt.Errorf("%s is no folder with live runs: %w", d, err)
		}
	}
	report = &Report{Name: dir, Device: again}
	alone, others := 0, 0
	for _, f := range folders[dir] {
		first, second := filepath.Join(dir, liveFolder, f.Name()),
			filepath.Join(again, liveFolder, f.Name())
		if _, err := os.Stat(second); errors.Is(err, fs.ErrNotExist) && f.IsDir() {
			alone++
			continue
		}
		if !f.IsDir() {
			continue
		}
		r, other, err := repeated(f.Name(), first, second)
		if err != nil {
			return nil, nil, err
		}
		if report.Runs = append(report.Runs, r); other {
			others++
		}
	}
	for _, f := range folders[again] {
		if _, err := os.Stat(filepath.Join(dir, liveFolder, f.Name())); err != nil && f.IsDir() {
			alone++
		}
	}
	switch {
	case len(report.Runs) == 0:
		return nil, nil, fmt.Errorf("%s and %s have no live run in common", dir, again)
	case alone > 0:
		notes = append(notes, fmt.Sprintf("runs that one folder alone has are left out: %d", alone))
	}
	if others > 0 {
		notes = append(notes, fmt.Sprintf("another program made %d of the %d second runs: what it does "+
			"otherwise is in the differences", others, len(report.Runs)))
	}
	return report, notes, nil
}

// repeated compares two folders of one run. other reports whether two programs made them.
func repeated(name, first, second string) (r ValidatedRun, other bool, err error) {
	r = ValidatedRun{Run: name, LiveFolder: first}
	var points [2]config.Point
	var made [2]manifest
	for i, side := range []struct {
		folder string
		into   *sim.Summary
	}{{first, &r.Live}, {second, &r.Simulated}} {
		if points[i], err = config.LoadPoint(filepath.Join(side.folder, run.ConfigFile)); err != nil {
			return r, false, err
		}
		if made[i], err = readManifest(side.folder); err != nil {
			return r, false, fmt.Errorf("%s: %w", side.folder, err)
		}
		if *side.into, err = run.ReadSummary(side.folder); err != nil {
			return r, false, err
		}
		if err := followsFromRequests(side.folder, side.into); err != nil {
			return r, false, err
		}
		served, err := readServed(side.folder)
		if err != nil {
			return r, false, err
		}
		r.Saturated = r.Saturated || saturated(side.into, served, &points[i].SLO)
	}
	p := points[0]
	for i := range points {
		points[i].Name, points[i].System.Engine, points[i].Output = "", "", config.Output{}
		points[i].Warnings = nil
	}
	if !reflect.DeepEqual(points[0], points[1]) {
		return r, false, fmt.Errorf("%s: its configuration is not that of %s", second, first)
	}
	if made[0].Device != made[1].Device {
		return r, false, fmt.Errorf("%s was made by a %s, %s by a %s", second, made[1].Device, first,
			made[0].Device)
	}
	r.System, r.Model, r.Rate, r.Seed = p.System.Name, p.Model, p.Workload.Rate, p.Seed
	r.Comparisons = compareSummaries(name, &r.Live, &r.Simulated)
	return r, programOf(&made[0]) != programOf(&made[1]), nil
}

// programOf returns the program that made a run, without its split option.
func programOf(m *manifest) string {
	name, _, _ := strings.Cut(m.Program, " ")
	return name
}
