package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim"
)

const sweepFile = `[workload]
rate = [0.05, 0.2]
requests = 300
[system]
preset = ["vllm", "sparseserve"]
[[axis]]
grid.offload.working_set_steps = [4, 8]
`

func TestSweep(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", sweepFile)
	for _, name := range []string{"sweep.txt", "sweep-again.txt"} {
		status, out, errs := runHere(t.Context(), pretend, "sweep", "s.toml")
		if status != 0 || errs != "" {
			t.Fatalf("status %d, stderr %q", status, errs)
		}
		testkit.Golden(t, name, filepath.ToSlash(out))
	}
}

func TestSweepJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", sweepFile)
	status, out, errs := runHere(t.Context(), pretend, "sweep", "s.toml", "--json", "--out", "here",
		"--points", "kept")
	var runs []sim.Summary
	if err := json.Unmarshal([]byte(out), &runs); err != nil || status != 0 || errs != "" ||
		len(runs) != 8 {
		t.Errorf("status %d, stderr %q, %d runs, %v", status, errs, len(runs), err)
	}
	if entries, err := os.ReadDir("kept"); err != nil || len(entries) != 8+2 {
		t.Errorf("%d entries in the shared folder, %v", len(entries), err)
	}
}

// TestSweepInterrupt: the status says so, and the same command runs the rest.
func TestSweepInterrupt(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", sweepFile)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ran := 0
	runner := func(ctx context.Context, p config.Point, sink run.Sink) (sim.Summary, error) {
		if ran++; ran == 4 {
			cancel()
			return sim.Summary{}, ctx.Err()
		}
		return pretend(ctx, p, sink)
	}
	status, _, errs := runHere(ctx, runner, "sweep", "s.toml", "--workers", "1")
	if want := "sparseserve: interrupted; 3 of 8 runs are finished and kept: the same command runs " +
		"the rest\n"; status != 130 || errs != want {
		t.Errorf("status %d, stderr %q", status, errs)
	}
	if status, _, errs := runHere(t.Context(), runner, "sweep", "s.toml", "--workers",
		"1"); status != 0 || ran != 4+5 {
		t.Errorf("status %d, %d ran, stderr %q", status, ran, errs)
	}
}

// A sweep runs points near a limit again with steps 5 % shorter and longer, also if another command
// made the point and did not do so.
func TestSweepNearALimit(t *testing.T) {
	var paced atomic.Int64
	near := func(ctx context.Context, p config.Point, sink run.Sink) (sim.Summary, error) {
		sum, err := pretend(ctx, p, sink)
		if sum.KVFull = 0.3; sink.StepTime > 0 {
			paced.Add(1)
			sum.TTFT.Mean = 70 * sink.StepTime
		}
		return sum, err
	}
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", strings.Replace(sweepFile, "0.05, 0.2", "0.05", 1))
	s, err := config.LoadSweep("s.toml", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	points, err := s.Points()
	if err != nil {
		t.Fatal(err)
	}
	store, err := run.OpenPointStore("kept", "test", false)
	if err != nil {
		t.Fatal(err)
	}
	one := []config.Point{points[0].Point}
	if _, _, err := store.Do(t.Context(), run.Grid{Run: near}, one); err != nil || paced.Load() != 0 {
		t.Fatalf("without: %d runs with other step times, %v", paced.Load(), err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again nothing is run
		status, out, errs := runHere(t.Context(), near, "sweep", "s.toml", "--points", "kept")
		if want := "near a limit: within 5 % of all KV for 30 % of the time; step times 5 % longer " +
			"would make mean TTFT 73.5 s"; status != 0 || !strings.Contains(out, want) ||
			paced.Load() != 8 {
			t.Fatalf("status %d, %d runs with other step times, %s%s", status, paced.Load(), out, errs)
		}
	}
}

// TestSweepNotes: what was damaged is said on stderr.
func TestSweepNotes(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", "[workload]\nrate = 0.1\n[system]\npreset = \"vllm\"\n")
	if status, _, errs := runHere(t.Context(), pretend, "sweep", "s.toml", "--out",
		"out"); status != 0 {
		t.Fatal(errs)
	}
	summaries, _ := filepath.Glob("out/points/*/summary.json")
	if len(summaries) != 1 {
		t.Fatalf("%d points", len(summaries))
	}
	writeFile(t, summaries[0], "{")
	status, _, errs := runHere(t.Context(), pretend, "sweep", "s.toml", "--out", "out")
	want := "note: " + filepath.Dir(summaries[0]) + ": summary.json is damaged; vllm-0.1-s1 runs " +
		"again\n"
	if status != 0 || errs != want {
		t.Errorf("status %d, stderr %q, want %q", status, errs, want)
	}
}

// Results of another version of the model are refused by name, and stay.
func TestAnotherVersion(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", "[workload]\nrate = 0.1\n[system]\npreset = \"vllm\"\n")
	if status, _, errs := runHere(t.Context(), loaded, "sweep", "s.toml", "--out",
		"out"); status != 0 {
		t.Fatal(errs)
	}
	later := func(args ...string) (status int, stderr string) {
		var out, errs bytes.Buffer
		app := App{Stdout: &out, Stderr: &errs, Run: loaded, Version: "later"}
		return app.Main(t.Context(), args), errs.String()
	}
	want := "sparseserve: out/points: results of another version of the model (\"test\" in format " +
		"2, this is \"later\" in format 2); " +
		"keep them by choosing another folder, or remove this one to run everything again\n"
	if err := os.MkdirAll("job", 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, "job/points.txt", "")
	for _, args := range [][]string{{"sweep", "s.toml", "--out", "elsewhere"},
		{"goodput", "s.toml", "--out", "elsewhere"},
		{"task", "job", "--tasks", "1", "--task", "1"}} {
		command := args[0]
		args = append(args, "--points", "out/points")
		if status, errs := later(args...); status != 1 || errs != want {
			t.Errorf("%s: status %d, stderr %q", command, status, errs)
		}
	}
	if status, out, errs := runHere(t.Context(), nil, "sweep", "s.toml", "--out",
		"out"); status != 0 || !strings.Contains(out, "1 of them finished before") {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, errs)
	}
}
