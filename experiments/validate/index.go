package validate

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/traces"
)

// report compares the runs, prices the steps of the live ones, and writes runs.json.
func (v *Validation) report(lives, simulated []string) (*Report, error) {
	r := &Report{Name: v.Sweep.Name}
	var devices []string
	for i := range v.points {
		p := &v.points[i]
		row := ValidatedRun{Run: p.Label(), System: p.System.Name, Model: p.Model, GPU: p.GPU,
			Rate: p.Workload.Rate, Clients: p.Workload.Concurrency, Seed: p.Seed,
			Trace: filepath.Base(p.Workload.Trace), Requests: traces.Count(p.Workload),
			Variant: loadLabel(p.Settings), DelayS: p.SLO.DelayS, LivePath: v.below(lives[i]),
			SimulatedPath: v.below(simulated[i])}
		steps, err := priced(p, lives[i])
		if err == nil {
			row.Steps = compareSteps(p.Label(), steps)
			err = row.read(v.Dir)
		}
		if err != nil {
			return nil, err
		}
		if row.Live.Completed == 0 {
			v.notes = append(v.notes, fmt.Sprintf("%s is left out: its live run served no request; %s "+
				"has the reasons", p.Label(), filepath.Join(lives[i], run.RequestsCSV+".gz")))
			continue
		}
		made, err := readManifest(lives[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", lives[i], err)
		}
		if !slices.Contains(devices, made.Device) {
			devices = append(devices, made.Device)
		}
		r.Runs = append(r.Runs, row)
	}
	if len(r.Runs) == 0 {
		return nil, fmt.Errorf("%s: no live run served a request: %s", v.Dir,
			strings.Join(v.notes, "; "))
	}
	r.Device = strings.Join(devices, ", ")
	return r, errors.Join(run.WriteJSON(filepath.Join(v.Dir, validationIndex), r), r.write(v.Dir))
}

// below returns the path of a file of the result folder from there.
func (v *Validation) below(path string) string {
	return strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(filepath.Clean(v.Dir))+"/")
}

// safeName converts a label to a file name.
func safeName(label string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (slices.Contains([]rune("._+-="), r) || '0' <= r && r <= '9' || 'a' <= r &&
			r <= 'z' || 'A' <= r && r <= 'Z') {
			return r
		}
		return '_'
	}, label)
}

// loadLabel lists the axis settings other than the system: systems that differ in a key of their
// own are compared at one load.
func loadLabel(settings []config.Setting) string {
	load := slices.DeleteFunc(slices.Clone(settings), func(s config.Setting) bool {
		return config.OfSystem(s.Key)
	})
	return strings.TrimSpace(config.SettingsLabel(load))
}
