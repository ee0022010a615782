package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim/metrics"
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
	status, out, errs := runHere(t.Context(), pretend, "simulate", "s.toml")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	testkit.Golden(t, "sweep.txt", filepath.ToSlash(out))
	_, again, _ := runHere(t.Context(), pretend, "simulate", "s.toml")
	_, rest, ok := strings.Cut(again, "\n8 of 8 runs finished before and are kept in out/s/runs.\n")
	if !ok || !strings.HasSuffix(out, rest) {
		t.Errorf("again:\n%s", again)
	}
}

func TestSweepJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", sweepFile)
	status, out, errs := runHere(t.Context(), pretend, "simulate", "s.toml", "--json", "--out", "here",
		"--points", "kept")
	var runs []metrics.Summary
	if err := json.Unmarshal([]byte(out), &runs); err != nil || status != 0 || errs != "" ||
		len(runs) != 8 {
		t.Errorf("status %d, stderr %q, %d runs, %v", status, errs, len(runs), err)
	}
	if kept := finishedRuns(t, "kept"); kept != 8 {
		t.Errorf("%d runs in the shared folder", kept)
	}
}

// A sweep runs points near a limit again with steps 5 % shorter and longer, also if another command
// made the point and did not do so.
func TestSweepNearALimit(t *testing.T) {
	var paced atomic.Int64
	near := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		sum, err := pretend(ctx, p, sink)
		if sum.KVFull = 0.3; sink.StepTime > 0 {
			paced.Add(1)
			sum.TTFT.Mean = 70 * sink.StepTime
		}
		return sum, err
	}
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", strings.Replace(sweepFile, "0.05, 0.2", "0.05", 1))
	s, err := config.LoadSweep(t.Context(), "s.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	points, err := s.Points(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store, err := run.OpenStore("kept", "test", false)
	if err != nil {
		t.Fatal(err)
	}
	one := []config.Point{points[0]}
	if _, err := store.Do(t.Context(), run.Grid{Run: near}, one); err != nil || paced.Load() != 0 {
		t.Fatalf("without: %d runs with other step times, %v", paced.Load(), err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again nothing is run
		status, out, errs := runHere(t.Context(), near, "simulate", "s.toml", "--points", "kept")
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
	if status, _, errs := runHere(t.Context(), pretend, "simulate", "s.toml", "--out",
		"out"); status != 0 {
		t.Fatal(errs)
	}
	packed := filepath.Join("out", run.RunsFolder, "packed.zip")
	writeFile(t, packed, "{")
	status, _, errs := runHere(t.Context(), pretend, "simulate", "s.toml", "--out", "out")
	want := "note: " + packed + ": damaged: zip: not a valid zip file; vllm-0.1-s1 runs again\n"
	if status != 0 || errs != want {
		t.Errorf("status %d, stderr %q, want %q", status, errs, want)
	}
}

// Results of another version of the model are refused by name, and stay.
func TestAnotherVersion(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", "[workload]\nrate = 0.1\n[system]\npreset = \"vllm\"\n")
	if status, _, errs := runHere(t.Context(), loaded, "simulate", "s.toml", "--out",
		"out"); status != 0 {
		t.Fatal(errs)
	}
	later := func(args ...string) (status int, stderr string) {
		var out, errs bytes.Buffer
		app := App{Stdout: &out, Stderr: &errs, Run: loaded, Version: "later"}
		return app.Main(t.Context(), args), errs.String()
	}
	want := "sparseserve: out: holds results of another version of the model (\"test\", this is " +
		"\"later\"): choose another folder, or give --force to replace them\n"
	if status, errs := later("simulate", "s.toml", "--out", "out"); status != 1 || errs != want {
		t.Errorf("status %d, stderr %q", status, errs)
	}
	if status, errs := later("simulate", "s.toml", "--out", "elsewhere", "--points",
		"out/runs"); status != 0 || finishedRuns(t, "out/runs") != 2 {
		t.Errorf("beside each other: status %d, stderr %q", status, errs)
	}
	if status, out, errs := runHere(t.Context(), nil, "simulate", "s.toml", "--out",
		"out"); status != 0 || !strings.Contains(out, "1 of 1 runs finished before") {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, errs)
	}
}
