package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// An experiment that served no request is no success, though its results are kept and printed;
// one of which a system served some is.
func TestNothingServed(t *testing.T) {
	refuse := func(who []string) run.Runner {
		return func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
			sum, err := pretend(ctx, p, sink)
			if slices.Contains(who, p.System.Name) {
				sum.Completed, sum.Rejected = 0, p.Workload.Requests
			}
			return sum, err
		}
	}
	both := []string{"vllm", "vllm-s"}
	two := []string{"--set", "workload.rate=0.1", "--set", "system.preset=[vllm,vllm-s]"}
	for _, c := range []struct {
		command []string
		refuse  []string
		status  int
	}{
		{[]string{"simulate"}, both, exitFailed}, {[]string{"simulate", "--json"}, both, exitFailed},
		{[]string{"simulate"}, both[1:], exitOK},
	} {
		status, out, errs := invoke(t, refuse(c.refuse), append(c.command, two...)...)
		if status != c.status ||
			strings.Contains(errs, "no request was served") != (c.status != exitOK) || out == "" {
			t.Errorf("%v: status %d, stderr %q", c.command, status, errs)
		}
		if c.command[len(c.command)-1] == "--json" && !json.Valid([]byte(out)) {
			t.Errorf("%v: %s", c.command, out)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	_, command, _ := invoke(t, nil, "version")
	if status, flag, errs := invoke(t, nil, "--version"); status != exitOK || flag != command ||
		flag == "" {
		t.Errorf("status %d, stdout %q, stderr %q, want %q", status, flag, errs, command)
	}
}

// Presets and [[systems]] of one file all run, which is said.
func TestPresetsAndOwnSystems(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "both.toml", "[system]\npreset = \"vllm\"\n[[systems]]\nname = \"mine\"\n")
	const note = "note: both system.preset and [[systems]] name systems, and all run: vllm; mine\n"
	if status, _, errs := runHere(t.Context(), pretend, "simulate", "both.toml"); status != exitOK ||
		errs != note {
		t.Errorf("status %d, stderr %q", status, errs)
	}
	_, _, errs := runHere(t.Context(), pretend, "simulate", "both.toml", "--set", "system.preset=mine")
	if errs != "" {
		t.Errorf("with one system: %q", errs)
	}
}
