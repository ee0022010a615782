package experiments

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sparseserve/hw"
	"sparseserve/sim"
	"sparseserve/traces"
)

// Every freed parameter has a reason, and the value that is written down is the
// one that the paper's experiments run with.
func TestFreedParametersAreAsWritten(t *testing.T) {
	for _, f := range FreedParameters() {
		if f.Name == "" || f.Key == "" || len(f.Reason) < 10 {
			t.Errorf("%+v: what is it?", f)
		}
		for _, experiment := range []string{"fig10a", "fig10b"} {
			config := mustSweep(t, experiment).Variants[0].Config
			want, ok := f.Of(config.Model)
			_, table, key, err := f.place(config)
			if err != nil {
				t.Fatal(err)
			}
			if have, _ := table[key].(float64); !ok || have != want {
				t.Errorf("%s: %s of %s is %v, freed.toml says %g", experiment, f.Key, config.Model, table[key], want)
			}
		}
	}
}

func TestScaled(t *testing.T) {
	for _, c := range []struct {
		f            Freed
		factor, want float64
	}{
		{Freed{Value: 8}, 0.5, 4},
		{Freed{Value: 0.95, Most: 1}, 2, 1},
		{Freed{Value: 0.97, Distance: 1}, 2, 0.94},
		{Freed{Value: 0.97, Distance: 1}, 0.5, 0.985},
	} {
		if got := c.f.Scaled(c.f.Value, c.factor); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v times %g is %g, want %g", c.f, c.factor, got, c.want)
		}
	}
}

// changedLab runs experiments with a freed parameter at a multiple and returns
// every point by the name of its experiment.
func changedLab(t *testing.T, name string, factor float64, experiment string) []Point {
	t.Helper()
	var mu sync.Mutex
	var points []Point
	lab := newLab(t, func(_ context.Context, p Point, _ Sink) (sim.Summary, error) {
		mu.Lock()
		defer mu.Unlock()
		points = append(points, p)
		return sim.Summary{Completed: 1}, nil
	})
	for _, f := range FreedParameters() {
		if f.Name == name {
			lab.Change = &Change{f, factor}
		}
	}
	if lab.Change == nil {
		t.Fatalf("no freed parameter %s", name)
	}
	if _, err := lab.Do(t.Context(), experiment); err != nil {
		t.Fatal(err)
	}
	if len(points) == 0 {
		t.Fatal("nothing ran")
	}
	return points
}

func TestChangeReachesTheRuns(t *testing.T) {
	for _, p := range changedLab(t, "output_scale", 0.5, "fig10b") {
		if p.Workload.OutputScale != 4 {
			t.Fatalf("Llama3-8B's outputs at half: scale %g, want 4", p.Workload.OutputScale)
		}
	}
	for _, p := range changedLab(t, "output_scale", 2, "fig14b") {
		if p.Workload.OutputScale != 0.001 {
			t.Fatalf("prefill alone: scale %g, want its own", p.Workload.OutputScale)
		}
	}
	for _, p := range changedLab(t, "scores.rho", 2, "fig16b") {
		if math.Abs(p.Scores.Rho-0.90) > 1e-12 || p.Scores.Drift != traces.DefaultScores.Drift {
			t.Fatalf("scores %+v", p.Scores)
		}
	}
	before, err := hw.LoadProfile("a100-40gb")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range changedLab(t, "load.memcpy_call", 0.5, "fig14b") {
		after, err := hw.LoadProfile(p.GPU)
		if err != nil {
			t.Fatal(err)
		}
		if after.Load.MemcpyCall.Value != before.Load.MemcpyCall.Value/2 {
			t.Fatalf("a call takes %+v", after.Load.MemcpyCall)
		}
		after.Load.MemcpyCall = before.Load.MemcpyCall
		a, _ := after.Encode()
		b, _ := before.Encode()
		if string(a) != string(b) {
			t.Fatal("another figure of the profile changed too")
		}
	}
}

// What serves no requests follows a change too.
func TestChangeReachesTheTables(t *testing.T) {
	table := func(change *Change, experiment string) string {
		lab, _ := countingLab(t)
		lab.Change = change
		if _, err := lab.Do(t.Context(), experiment); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(lab.Dir, experiment, tableFile))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, f := range FreedParameters() {
		for experiment, touches := range map[string]bool{
			"fig04": strings.HasSuffix(f.Name, "memcpy_call"),
			"fig08": strings.HasPrefix(f.Name, "scores."),
		} {
			if experiment == "fig08" && f.Name != "scores.drift" && f.Name != "output_scale" {
				continue // each takes a second
			}
			if same := table(nil, experiment) == table(&Change{f, 2}, experiment); same == touches {
				t.Errorf("%s at double leaves %s the same: %v", f.Name, experiment, same)
			}
		}
	}
}
