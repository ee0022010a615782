package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim"
)

func TestSimulate(t *testing.T) {
	for name, args := range map[string][]string{
		"default":    nil,
		"one-system": {"--set", "system.preset=sparseserve", "--set", "workload.rate=0.1", "--out", "here"},
		"seeds":      {"ablation", "--set", "seeds=[1,2]", "--set", "workload.rate=[0.1,0.2]"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, errs := invoke(t, pretend, append([]string{"simulate"}, args...)...)
			if status != 0 {
				t.Errorf("status %d", status)
			}
			if errs != "" {
				t.Errorf("stderr of a pipe is %q, want nothing", errs)
			}
			testkit.Golden(t, "simulate-"+name+".txt", filepath.ToSlash(out))
			for line := range strings.Lines(out) {
				if path := strings.TrimSpace(line); strings.HasPrefix(line, "  ") && filepath.Ext(path) != "" {
					if _, err := os.Stat(path); err != nil && !strings.Contains(path, " ") {
						t.Errorf("names a file that is not there: %v", err)
					}
				}
			}
		})
	}
}

func TestSimulateJSON(t *testing.T) {
	status, out, errs := invoke(t, pretend, "simulate", "--json", "--set", "workload.rate=0.1")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	d := json.NewDecoder(strings.NewReader(out))
	var runs []map[string]any
	if err := d.Decode(&runs); err != nil {
		t.Fatal(err)
	}
	if d.More() {
		t.Error("something follows the array")
	}
	if len(runs) != 4 {
		t.Fatalf("%d objects, want one a run", len(runs))
	}
	for _, key := range []string{"name", "system", "model", "gpu", "seed", "rate", "requests", "completed", "rejected",
		"simulated_s", "wall_s", "steps", "ttft_s", "tbt_s", "queue_delay_s", "throughput_tok_s", "batch_mean",
		"blocks_loaded_per_step", "hit_ratio", "h2d_bytes", "d2h_bytes", "warnings"} {
		if _, ok := runs[0][key]; !ok {
			t.Errorf("no key %q", key)
		}
	}
}

func TestReplayedTraceHasNoFigures(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "t.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,10\n1,100,10\n")
	status, out, errs := runHere(t.Context(), pretend, "simulate", "--set", "workload.trace=t.csv", "--set", "workload.arrivals=trace")
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	if strings.Contains(out, ".png") || !strings.Contains(out, "trace │ vllm") {
		t.Errorf("want a table for the trace and no figure against the rate:\n%s", out)
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	runner := func(ctx context.Context, p config.Point, sink run.Sink) (sim.Summary, error) {
		if p.Workload.Rate == 0.15 {
			cancel()
			return sim.Summary{}, ctx.Err()
		}
		return pretend(ctx, p, sink)
	}
	t.Chdir(t.TempDir())
	status, out, errs := runHere(ctx, runner, "simulate", "--workers", "1", "--set", "system.preset=sparseserve")
	if status != 130 {
		t.Errorf("status %d, want 130", status)
	}
	if want := "sparseserve: interrupted; 2 of 5 runs finished and are kept in out/default\n"; filepath.ToSlash(errs) != want {
		t.Errorf("stderr %q, want %q", errs, want)
	}
	if !strings.Contains(out, "0.05 │ sparseserve") {
		t.Errorf("the table lacks what finished:\n%s", out)
	}
	if left, _ := os.ReadDir("out/default/points"); len(left) != 2 {
		t.Errorf("points kept: %v", left)
	}
}

func TestInterruptBeforeAnything(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	t.Chdir(t.TempDir())
	status, _, errs := runHere(ctx, pretend, "simulate")
	if status != 130 || strings.Count(errs, "\n") != 1 {
		t.Errorf("status %d, stderr %q", status, errs)
	}
	if _, err := os.Stat("out/default"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a result folder was left: %v", err)
	}
}
