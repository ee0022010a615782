package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/validate"
)

// TestValidateTiny runs the experiment that comes with the program, on the
// reference device.
func TestValidateTiny(t *testing.T) {
	out := t.TempDir()
	t.Chdir("../..")
	simulate := run.NewSimulator().Run
	args := []string{"validate", "experiments/validate-tiny.toml", "--live=reference", "--set",
		"workload.requests=2", "--split-every", "2", "--out", out}
	status, first, errs := runHere(t.Context(), simulate, args...)
	if status != 0 || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	// whether any run is, depends on the machine
	for _, want := range []string{"validate-tiny on reference device in Go",
		"│ sparseserve-4-s1     │", "│ sparseserve-psa-4-s1 │", "below saturation", "7 pictures"} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in\n%s", want, first)
		}
	}
	for _, name := range []string{"pictures/over-live.png", "pictures/steps-vllm-so-4-s1.png",
		"pictures/phases-4.png"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() < 100 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if status, again, errs := runHere(t.Context(), simulate, "validate", "reuse",
		out); status != 0 || again != first || errs != "" {
		t.Errorf("computed anew: status %d, stderr %q, stdout\n%s", status, errs, again)
	}
	if status, ablation, errs := runHere(t.Context(), nil, "validate", "ablate", out,
		"--format", "md"); status != 0 || errs != "" || strings.Count(ablation, "\n") < 20 ||
		!strings.Contains(ablation, "| GEMM | gemm | ") {
		t.Errorf("ablation: status %d, stderr %q, stdout\n%s", status, errs, ablation)
	}
	status, text, errs := runHere(t.Context(), nil, append(args, "--json")...)
	var all []validate.Comparison
	if err := json.Unmarshal([]byte(text), &all); status != 0 || errs != "" || err != nil ||
		len(all) < 5*11 {
		t.Errorf("status %d, stderr %q, %d comparisons, %v", status, errs, len(all), err)
	}
	kept, err := os.ReadFile(filepath.Join(out, "validate.json"))
	if err != nil || string(kept) != text {
		t.Errorf("--json prints other text than validate.json has; %v", err)
	}
}

// Sessions on six machines of which the model has nothing: their runs meet the goals and are as far
// off as docs/validation.md has it. Their steps, which were not kept, are not compared.
func TestValidateSessions(t *testing.T) {
	t.Parallel()
	experiments := filepath.Join("..", "..", "experiments")
	documented, err := os.ReadFile(filepath.Join("..", "..", "docs", "validation.md"))
	if err != nil {
		t.Fatal(err)
	}
	sets := []struct {
		name string
		met  int // runs that meet every goal, of 8
	}{
		{"sessions-h200", 8}, {"sessions-h200-second", 8}, {"sessions-h200-third", 8},
		{"sessions-h200-fourth", 7}, {"sessions-h200-fifth", 8}, {"sessions-h200-sixth", 7},
	}
	if testing.Short() {
		sets = sets[:1]
	}
	metrics := []string{"ttft_mean_s", "ttft_p99_s", "tbt_mean_s", "tbt_p99_s", "throughput_tok_s",
		"blocks_loaded_per_step"}
	met, runs := 0, 0
	var ttft, tbt span
	cells := map[string][][]float64{} // errors by system and rate, of each metric, by machine
	for _, s := range sets {
		set, dir := s.name, t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(experiments, "validation", set))); err != nil {
			t.Fatal(err)
		}
		status, text, errs := runHere(t.Context(), run.NewSimulator().Run, "validate", "reuse",
			filepath.Join(experiments, "validate-prefix.toml"), "--out", dir)
		if status != 0 || !strings.Contains(errs, "steps are not compared of 8 of 8 runs, which were "+
			"kept without calls.json.gz") || strings.Contains(text, "stood still") ||
			!strings.Contains(text, fmt.Sprintf("\n%d of 8 runs below saturation meet every goal", s.met)) {
			t.Errorf("%s: status %d, stderr %q:\n%s", set, status, errs, text)
		}
		if all, err := filepath.Glob(filepath.Join(dir, "pictures", "*")); len(all) != 1 || err != nil {
			t.Errorf("%s: pictures %v, want one of all runs (%v)", set, all, err)
		}
		if _, _, errs := runHere(t.Context(), nil, "validate", "ablate", dir); !strings.Contains(errs,
			"no run was kept with what its steps asked") {
			t.Errorf("%s: ablated without steps: %s", set, errs)
		}
		report, err := validate.Recompute(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i := range report.Runs {
			r := &report.Runs[i]
			if runs++; len(r.Misses()) == 0 {
				met++
			}
			ttft.add(r, "ttft_mean_s")
			tbt.add(r, "tbt_mean_s")
			load := fmt.Sprintf("| %s | %g |", r.System, r.Rate)
			if cells[load] == nil {
				cells[load] = make([][]float64, len(metrics))
			}
			for j, metric := range metrics {
				c, _ := r.Of(metric)
				cells[load][j] = append(cells[load][j], 100**c.Error)
			}
		}
	}
	for load, of := range cells {
		row := load
		for _, machines := range of {
			if slices.Max(machines) == 0 && slices.Min(machines) == 0 {
				row += " - |" // nothing is loaded
				continue
			}
			row += fmt.Sprintf(" %+.1f to %+.1f |", slices.Min(machines), slices.Max(machines))
		}
		if !testing.Short() && !strings.Contains(string(documented), row+"\n") {
			t.Errorf("docs/validation.md lacks the row %s", row)
		}
	}
	if len(cells) != 8 {
		t.Errorf("%d systems and loads, want 8", len(cells))
	}
	row := fmt.Sprintf("\n| 48 sessions, prefix cache, six H200s | %s | %s | %d of %d |", ttft, tbt,
		met, runs)
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if !testing.Short() && !strings.Contains(string(readme), row) {
		t.Errorf("README.md lacks the row %s (%v)", row, err)
	}
}

// Two kept sets of live runs are compared without a model.
func TestValidateRepeat(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	const first = "experiments/validation/prefix-h100"
	status, text, errs := runHere(t.Context(), nil, "validate", "repeat", first,
		first+"-second")
	if status != 0 || !strings.Contains(errs, "another program made 8 of the 8 second runs") ||
		strings.Contains(text, "decode") ||
		!strings.Contains(text, "8 of 8 runs below saturation meet every goal") ||
		!strings.Contains(text, "The live runs of experiments/validation/prefix-h100-second over "+
			"those of experiments/validation/prefix-h100 less 1") {
		t.Errorf("status %d, stderr %q:\n%s", status, errs, text)
	}
	status, text, errs = runHere(t.Context(), nil, "validate", "repeat", "--json", first,
		first+"-second")
	var all []validate.Comparison
	if err := json.Unmarshal([]byte(text), &all); err != nil || status != 0 || len(all) < 8*9 {
		t.Errorf("status %d, stderr %q, %d comparisons, %v", status, errs, len(all), err)
	}
}

func TestValidateErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "v.toml", "gpu = \"h200\"\n[workload]\nrate = 1\n")
	for args, want := range map[string]string{
		"":                            `expected "<FILE>"`,
		"repeat a":                    `expected "<AGAIN>"`,
		"repeat a b":                  "a is no folder with live runs",
		"ablate nowhere":              "nowhere: no runs.json, so no validation was finished here",
		"reuse .":                     ".: no runs.json, so no validation was finished here",
		"reuse . --out d":             "a result folder has its own configuration",
		"reuse nowhere":               "nowhere: no such file",
		"v.toml --workers=-1":         "--workers: expected",
		"v.toml --split-every=-1":     "--split-every -1: must be 0 or more",
		"v.toml --live=gpus":          `want gpu or reference, got "gpus"`,
		"none.toml":                   "none.toml: no such file",
		"v.toml --set workload.rat=1": "workload.rat",
		"live v.toml --json":          "unknown flag --json",
		"v.toml --live=reference --set system.kv_gib=1000": "kv_gib",
	} {
		status, _, errs := runHere(t.Context(), pretend,
			append([]string{"validate"}, strings.Fields(args)...)...)
		if status != 1 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: status %d, stderr %q, want %q", args, status, errs, want)
		}
	}
}

// An interrupt says what is kept.
func TestValidateInterrupt(t *testing.T) {
	out := t.TempDir()
	t.Chdir("../..")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, _, errs := runHere(ctx, pretend, "validate", "experiments/validate-tiny.toml",
		"--live=reference", "--out", out)
	want := "sparseserve: interrupted; 0 of 5 live runs are kept: the same command runs the rest\n"
	if status != 130 || errs != want {
		t.Errorf("status %d, stderr %q", status, errs)
	}
}
