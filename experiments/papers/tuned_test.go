package papers

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/score"
)

// Every tuned parameter has a reason, the value that is written down is the one
// that the paper's experiments run with, and some run depends on it.
func TestTunedParametersAreAsWritten(t *testing.T) {
	gpu := mustProfile(t, "a100-40gb")
	for _, f := range TunedParameters() {
		if f.Name == "" || len(f.Reason) < 10 {
			t.Errorf("%+v: what is it?", f)
		}
		if f.Profile == gpu.Name {
			if figure, err := figureOf(gpu, f.Key); err != nil || figure.Value != f.Value ||
				figure.Unit != f.Unit && figure.Unit != "share" {
				t.Errorf("%s is %g %s, the profile has %+v (%v)", f.Name, f.Value, f.Unit, figure, err)
			}
		}
		for _, experiment := range []string{"fig10b", "fig14b"} {
			used := false
			for _, p := range mustPoints(t, mustSweep(t, experiment)) {
				used = (&Change{f, 2}).apply(&p, "changed.toml") || used
			}
			// Llama3-8B's systems never save with the GPU, and prefill alone has no outputs.
			if want := !(f.Name == "save.contention" && experiment == "fig10b") &&
				!(f.Name == "output_scale" && experiment == "fig14b"); used != want {
				t.Errorf("%s depends on %s: %v", experiment, f.Name, used)
			}
		}
	}
	for _, key := range []string{"load.memcpy", "load", "link.h2d.value"} {
		if _, err := figureOf(gpu, key); err == nil {
			t.Errorf("%s passes for a figure", key)
		}
	}
}

func TestScaled(t *testing.T) {
	for _, c := range []struct {
		f            Tuned
		factor, want float64
	}{
		{Tuned{Value: 8}, 0.5, 4},
		{Tuned{Value: 0.95, Most: 1}, 2, 1},
		{Tuned{Value: 0.97, Distance: 1}, 2, 0.94},
		{Tuned{Value: 0.97, Distance: 1}, 0.5, 0.985},
	} {
		if got := c.f.Scaled(c.f.Value, c.factor); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v times %g is %g, want %g", c.f, c.factor, got, c.want)
		}
	}
}

// changedStudies runs experiments with a tuned parameter at a multiple and returns
// every point by the name of its experiment.
func changedStudies(t *testing.T, name string, factor float64, experiment string) []config.Point {
	t.Helper()
	var mu sync.Mutex
	var points []config.Point
	studies := newStudies(t, func(_ context.Context, p config.Point, _ run.Sink) (metrics.Summary,
		error) {
		mu.Lock()
		defer mu.Unlock()
		points = append(points, p)
		return metrics.Summary{Completed: 1}, nil
	})
	for _, f := range TunedParameters() {
		if f.Name == name {
			studies.Change = &Change{f, factor}
		}
	}
	if studies.Change == nil {
		t.Fatalf("no tuned parameter %s", name)
	}
	if err := studies.Do(t.Context(), experiment); err != nil {
		t.Fatal(err)
	}
	if len(points) == 0 {
		t.Fatal("nothing ran")
	}
	return points
}

// Exchanged, each model has the other's output lengths; PSA's Llama-3.1-8B has none that is tuned.
func TestSwapped(t *testing.T) {
	for _, c := range []struct {
		experiment string
		want       float64
	}{{"fig15", 8}, {"fig10b", 1.85}, {"psa-fig6a", 8}, {"psa-fig6c", 1.85}, {"fig14b", 0.001}} {
		for _, p := range mustPoints(t, mustSweep(t, c.experiment)) {
			if Swapped().apply(&p, ""); p.Workload.OutputScale != c.want {
				t.Errorf("%s: %s has outputs x %g, want %g", c.experiment, p.Model,
					p.Workload.OutputScale, c.want)
			}
		}
	}
}

func TestChangeReachesTheRuns(t *testing.T) {
	for _, p := range changedStudies(t, "output_scale", 0.5, "fig10b") {
		if p.Workload.OutputScale != 4 {
			t.Fatalf("Llama3-8B's outputs at half: scale %g, want 4", p.Workload.OutputScale)
		}
	}
	for _, p := range changedStudies(t, "output_scale", 2, "fig14b") {
		if p.Workload.OutputScale != 0.001 {
			t.Fatalf("prefill alone: scale %g, want its own", p.Workload.OutputScale)
		}
	}
	for _, p := range changedStudies(t, "scores.rho", 2, "fig16b") {
		if math.Abs(p.Scores.Rho-0.90) > 1e-12 || p.Scores.Drift != score.Default.Drift {
			t.Fatalf("scores %+v", p.Scores)
		}
	}
	before, changed := mustProfile(t, "a100-40gb"), 0
	for _, p := range changedStudies(t, "save.memcpy_call", 0.5, "fig14b") {
		if (p.GPU == before.Name) == (p.System.Offload.On && p.System.Offload.Save == "memcpy") {
			t.Fatalf("%s saving with %s runs on %s", p.System.Name, p.System.Offload.Save, p.GPU)
		}
		if p.GPU == before.Name {
			continue
		}
		changed++
		after, err := hw.Load(p.GPU, p.System.Engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		if after.Save.MemcpyCall.Value != before.Save.MemcpyCall.Value/2 {
			t.Fatalf("a call takes %+v", after.Save.MemcpyCall)
		}
		after.Save.MemcpyCall = before.Save.MemcpyCall
		if !reflect.DeepEqual(after, before) {
			t.Fatal("another figure of the profile changed too")
		}
	}
	if changed != 3 { // seeds
		t.Errorf("%d runs changed, want 3", changed)
	}
}

func mustProfile(t *testing.T, name string) *hw.Profile {
	t.Helper()
	gpu, err := hw.Load(name, paperEngine, nil)
	if err != nil {
		t.Fatal(err)
	}
	return gpu
}

// What serves no requests follows a change too.
func TestChangeReachesTheTables(t *testing.T) {
	table := func(change *Change, experiment string) string {
		studies, _ := countingStudies(t)
		studies.Change = change
		if err := studies.Do(t.Context(), experiment); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(studies.Dir, experiment, tableFile))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	unchanged := map[string]string{"fig04": table(nil, "fig04"), "fig08": table(nil, "fig08")}
	for _, f := range TunedParameters() {
		for experiment, touches := range map[string]bool{
			"fig04": strings.HasSuffix(f.Name, "memcpy_call"),
			"fig08": strings.HasPrefix(f.Name, "scores."),
		} {
			if experiment == "fig08" && f.Name != "scores.drift" && f.Name != "output_scale" {
				continue // each takes a second
			}
			if same := unchanged[experiment] == table(&Change{f, 2}, experiment); same == touches {
				t.Errorf("%s at double leaves %s the same: %v", f.Name, experiment, same)
			}
		}
	}
}
