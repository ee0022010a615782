package validate

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/traces"
)

// index prices the steps of the live runs and writes runs.json.
func (v *Validation) index(lives, simulated []string) error {
	index := validationRuns{Name: v.Sweep.Name}
	var devices []string
	for i := range v.points {
		p := &v.points[i]
		sum, err := run.ReadSummary(lives[i])
		if err != nil {
			return err
		}
		if sum.Completed == 0 {
			v.notes = append(v.notes, fmt.Sprintf("%s is left out: its live run served no request; %s "+
				"has the reasons", p.Label(), filepath.Join(lives[i], run.RequestsCSV+".gz")))
			continue
		}
		made, err := readManifest(lives[i])
		if err != nil {
			return fmt.Errorf("%s: %w", lives[i], err)
		}
		row := validationRun{Run: p.Label(), System: p.System.Name, Model: p.Model, GPU: p.GPU,
			Rate: p.Workload.Rate, Clients: p.Workload.Concurrency, Seed: p.Seed,
			Trace: filepath.Base(p.Workload.Trace), Requests: traces.Count(p.Workload),
			Variant: loadLabel(p.Settings), DelayS: p.SLO.DelayS}
		for _, path := range []struct {
			from string
			into *string
		}{{lives[i], &row.Live}, {simulated[i], &row.Simulated}} {
			rel, err := filepath.Rel(v.Dir, path.from)
			if err != nil {
				return err
			}
			*path.into = filepath.ToSlash(rel)
		}
		steps, err := priced(p, lives[i])
		if err != nil {
			return err
		}
		row.Steps = compareSteps(p.Label(), steps)
		requests, err := readServed(lives[i])
		if err != nil {
			return err
		}
		row.Saturated = saturated(&sum, requests, &p.SLO)
		if !slices.Contains(devices, made.Device) {
			devices = append(devices, made.Device)
		}
		index.Runs = append(index.Runs, row)
	}
	if len(index.Runs) == 0 {
		return fmt.Errorf("%s: no live run served a request: %s", v.Dir, strings.Join(v.notes, "; "))
	}
	index.Device = strings.Join(devices, ", ")
	return run.WriteJSON(filepath.Join(v.Dir, validationIndex), &index)
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
