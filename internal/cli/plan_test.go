package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// loaded is a runner whose delay passes 2 s at 0.11 requests/s and a little
// more with every seed; sparseserve's P99 TBT grows too long at 0.5.
func loaded(_ context.Context, p config.Point, _ run.Sink) (metrics.Summary, error) {
	sum := metrics.Summary{Completed: p.Workload.Requests, TBT: metrics.Stats{P99: 0.05},
		QueueDelay:     metrics.Stats{Mean: 2 * p.Workload.Rate / (0.1 + float64(p.Seed)/100)},
		ThroughputTokS: 197 * p.Workload.Rate}
	if p.System.Name == "sparseserve" {
		sum.QueueDelay.Mean = 0.1
		sum.TBT.P99 = p.Workload.Rate * 1.5
	}
	return sum, nil
}

func TestPlan(t *testing.T) {
	status, out, errs := invoke(t, loaded, "goodput", "--set", "system.preset=[vllm, sparseserve]",
		"--set", "slo.tbt_s=0.75", "--set", "slo.delay_s=2", "--set", "workload.requests=100")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	testkit.Golden(t, "goodput.txt", filepath.ToSlash(out))
	folders, err := filepath.Glob("out/goodput/*")
	if err != nil || len(folders) != 1 {
		t.Fatalf("%v, %v", folders, err)
	}
	reportSays(t, folders[0], out)
}

// reportSays checks that the report of a folder has every line that the command printed, except the
// list of files: all media have the terminal's words.
func reportSays(t *testing.T, folder, printed string) {
	t.Helper()
	status, report, errs := runHere(t.Context(), nil, "report", folder, "--format", "text")
	if status != exitOK {
		t.Fatalf("report: status %d, stderr %q", status, errs)
	}
	printed, _, _ = strings.Cut(printed, "\nFiles in ")
	for line := range strings.Lines(printed) {
		if !strings.Contains(report, line) && !strings.Contains(line, "sparseserve report") {
			t.Errorf("the report lacks %q:\n%s", line, report)
		}
	}
}

// A rate is an error if nothing is to be bought.
func TestPlanSaysThatARateIsNotUsed(t *testing.T) {
	for _, set := range []string{"workload.rate=3", "workload.requests=3"} {
		_, _, errs := invoke(t, loaded, "goodput", "--set", "system.preset=vllm", "--set",
			"slo.delay_s=2", "--set", set)
		want := set == "workload.rate=3"
		if strings.Contains(errs, "workload.rate is not used") != want {
			t.Errorf("%s: %q", set, errs)
		}
	}
}

func TestPlanJSON(t *testing.T) {
	status, out, errs := invoke(t, loaded, "goodput", "ablation", "--json", "--set",
		"system.preset=vllm",
		"--set", "seed=[1,2]", "--set", "slo.tbt_s=0.75", "--set", "slo.delay_s=2")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	testkit.Golden(t, "goodput.json", out)
	var found []map[string]any
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) != 1 {
		t.Errorf("%d objects, %v", len(found), err)
	}
}

func TestPlanInterrupt(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	stopped := func(ctx context.Context, _ config.Point, _ run.Sink) (metrics.Summary, error) {
		cancel()
		return metrics.Summary{}, ctx.Err()
	}
	status, out, errs := runHere(ctx, stopped, "goodput")
	want := "sparseserve: interrupted; finished runs are kept: the same command goes on\n"
	if status != 130 ||
		errs != want || out != "" {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, errs)
	}
}

// A plan whose base was edited is another question.
func TestPlanSeesItsBase(t *testing.T) {
	dir := t.TempDir()
	base, plan := filepath.Join(dir, "base.toml"), filepath.Join(dir, "plan.toml")
	writeFile(t, plan, "base = \"base.toml\"\nseed = [1]\n[system]\npreset = \"vllm\"\n")
	t.Chdir(t.TempDir())
	for _, c := range []struct{ requests, folders string }{{"100", "plan"}, {"100", "plan"},
		{"200", "plan plan-2"}} {
		writeFile(t, base, "[workload]\nrequests = "+c.requests+"\n")
		if status, _, errs := runHere(t.Context(), loaded, "goodput", plan); status != exitOK {
			t.Fatalf("status %d, stderr %q", status, errs)
		}
		dirs, err := filepath.Glob("out/goodput/*")
		for i := range dirs {
			dirs[i] = filepath.Base(dirs[i])
		}
		if got := strings.Join(dirs, " "); got != c.folders || err != nil {
			t.Errorf("base of %s requests: folders %q, want %q (%v)", c.requests, got, c.folders, err)
		}
	}
}

// Keys that no candidate uses are warned of in a search too, in its table and in JSON.
func TestPlanSaysWhichKeysHaveNoEffect(t *testing.T) {
	args := []string{"goodput", "--set", "system.preset=vllm", "--set", "slo.delay_s=2", "--set",
		"card.link_h2d=20", "--set", "seed=[1]", "--set", "workload.requests=200"}
	for _, more := range [][]string{nil, {"--json"}} {
		status, out, errs := invoke(t, loaded, append(args, more...)...)
		if status != 0 || !strings.Contains(out, "card.link_h2d=20: has no effect in any run") {
			t.Errorf("%q: status %d, %s%s", more, status, out, errs)
		}
	}
}
