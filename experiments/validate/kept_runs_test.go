package validate

import (
	"bytes"
	"encoding/csv"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// keptTable reads the live figures of the committed validate.csv, by run and metric.
func keptTable(t *testing.T, dir string) map[[2]string]string {
	t.Helper()
	text, err := files.ReadResult(filepath.Join(dir, validationCSV+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	label, metric, measured := slices.Index(rows[0], "run"), slices.Index(rows[0], "metric"),
		slices.Index(rows[0], "live")
	table := map[[2]string]string{}
	for _, row := range rows[1:] {
		table[[2]string{row[label], row[metric]}] = row[measured]
	}
	return table
}

// The live figures of the committed table follow from the live runs that are kept, whatever
// the model is today, and every run's folder is whole.
func TestKeptRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 23 runs")
	}
	t.Chdir(filepath.Join("..", "..")) // where the runs' configurations find their engine
	dir := filepath.Join("experiments", "validation", "longbench-h200")
	index, err := readIndex(dir)
	if err != nil {
		t.Fatal(err)
	}
	table := keptTable(t, dir)
	runs := make([]ValidatedRun, len(index.Runs))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, row := range index.Runs {
		group.Go(func() error {
			steps, live, err := keptSteps(filepath.Join(dir, row.LivePath))
			if err != nil {
				return err
			}
			requests, err := readServed(filepath.Join(dir, row.LivePath))
			if err != nil {
				return err
			}
			runs[i] = ValidatedRun{Run: row.Run, Live: live,
				Saturated: saturated(&live, requests, &config.SLO{DelayS: row.DelayS})}
			if runs[i].Saturated != row.Saturated {
				t.Errorf("%s: at saturation %v, %s has %v", row.Run, runs[i].Saturated, validationIndex,
					row.Saturated)
			}
			runs[i].Comparisons = slices.Concat(compareSummaries(row.Run, &live, &live),
				compareSteps(row.Run, steps))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i := range runs {
		for _, c := range runs[i].Comparisons {
			want, ok := table[[2]string{c.Run, c.Metric}]
			if !ok {
				continue
			}
			compared++
			if of, err := strconv.ParseFloat(want, 64); err != nil || math.Abs(c.Live-of) > 1e-9*of {
				t.Errorf("%s: %s is %g live, the table has %s", c.Run, c.Metric, c.Live, want)
			}
		}
	}
	if compared < 20*len(runs) {
		t.Errorf("only %d figures of %d runs compared", compared, len(runs))
	}
}

// keptSteps prices the steps of a kept live run.
func keptSteps(dir string) (steps []step, live metrics.Summary, err error) {
	p, err := config.LoadPoint(filepath.Join(dir, run.ConfigFile))
	if err != nil {
		return nil, live, err
	}
	if steps, err = priced(&p, dir); err != nil {
		return nil, live, err
	}
	live, err = run.ReadSummary(dir)
	return steps, live, err
}
