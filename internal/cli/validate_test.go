package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
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
		"│ sparseserve-4-s1     │", "│ sparseserve-psa-4-s1 │", "below saturation", "over-live.png, "} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in\n%s", want, first)
		}
	}
	if info, err := os.Stat(filepath.Join(out, "over-live.png")); err != nil || info.Size() < 100 {
		t.Error(err)
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

func TestValidateErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "v.toml", "gpu = \"h200\"\n[workload]\nrate = 1\n")
	for args, want := range map[string]string{
		"":                            `expected "<FILE>"`,
		"ablate nowhere":              "nowhere: no live run has the calls of its steps",
		"reuse .":                     ".: no runs.json, so no validation was finished here",
		"reuse . --out d":             "a result folder has its own configuration",
		"reuse nowhere":               "nowhere: no such file",
		"v.toml --workers=-1":         "--workers: expected",
		"v.toml --split-every=-1":     "--split-every -1: must be 0 or more",
		"v.toml --live=gpus":          `want gpu or reference, got "gpus"`,
		"none.toml":                   "none.toml: no such file",
		"v.toml --set workload.rat=1": "workload.rat",
		"v.toml --live=reference --set system.kv_gib=1000": "kv_gib",
	} {
		status, _, errs := runHere(t.Context(), pretend,
			append([]string{"validate"}, strings.Fields(args)...)...)
		if status != 1 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: status %d, stderr %q, want %q", args, status, errs, want)
		}
	}
}

// An interrupt names the kept runs.
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
