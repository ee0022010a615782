package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// whatifFlags are a small what-if on runs that are pretended.
var whatifFlags = []string{"whatif", "--set", "system.preset=sparseserve", "--set",
	"slo.tbt_s=0.75", "--set", "slo.delay_s=2", "--set", "workload.requests=100",
	"--vary", "link=0.5..2", "--vary", "budget=1024,4096", "--heat", "link,hbm", "--steps", "2"}

func TestWhatIf(t *testing.T) {
	status, out, errs := invoke(t, linked, whatifFlags...)
	if status != 0 || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	testkit.Golden(t, "whatif.txt", filepath.ToSlash(out))
	const folder = "out/whatif/default-preset=sparseserve-tbt_s=0.75-delay_s=2-requests=100/"
	for _, picture := range []string{"tornado.png", "heat.png"} {
		if _, err := os.Stat(folder + picture); err != nil {
			t.Error(err)
		}
	}
	reportSays(t, folder, out)
	before, _ := os.ReadFile(folder + "whatif.json")
	// all runs are kept
	status, again, errs := runHere(t.Context(), failing, append(whatifFlags, "--json")...)
	after, _ := os.ReadFile(folder + "whatif.json")
	if status != 0 || errs != "" || string(before) != string(after) || !json.Valid([]byte(again)) ||
		again != string(after) {
		t.Errorf("again: status %d, stderr %q, stdout %q", status, errs, again)
	}
}

func TestWhatIfThreshold(t *testing.T) {
	status, out, errs := invoke(t, pretend, "whatif", "--set", "system.preset=sparseserve", "--set",
		"workload.rate=0.1", "--metric", "ttft_mean",
		"--threshold", "budget", "--threshold", "offload-link", "--set", "slo.tbt_s=0.1")
	if want := "TBT is above its bound at budget = 320 and at 32768: no threshold between"; status !=
		0 || errs != "" || !strings.Contains(out, want) {
		t.Errorf("status %d, stderr %q, stdout %q", status, errs, out)
	}
}

func TestWhatIfInterrupt(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, out, errs := runHere(ctx, loaded, "whatif", "--vary", "link=2")
	want := "sparseserve: interrupted\n" // before a run was begun
	if status != 130 ||
		errs != want || out != "" {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, errs)
	}
}

// failing is a runner that is not to run.
func failing(context.Context, config.Point, run.Sink) (metrics.Summary, error) {
	return metrics.Summary{}, errors.New("run again")
}

// linked is loaded, and the sooner the slower the link and the larger the budget.
func linked(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
	sum, err := loaded(ctx, p, sink)
	link := 25.1
	if v, ok := p.Card["link_h2d"]; ok {
		link = v
	}
	sum.TBT.P99 *= (0.8 + 0.2*25.1/link) * (0.9 + 0.1*float64(p.System.Selection.BudgetTokens)/2048) *
		(1 + float64(p.Seed)/100)
	if v, ok := p.Card["hbm_size"]; ok {
		sum.TBT.P99 *= 40 / v
	}
	return sum, err
}
