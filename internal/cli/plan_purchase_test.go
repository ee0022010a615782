package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// shared is a runner whose P99 TTFT is 1 s at 6 requests/s on a GPU of an H200's replica, and at
// half of that on another card's.
func shared(_ context.Context, p config.Point, _ run.Sink) (metrics.Summary, error) {
	capacity := 3.0
	if p.GPU == "h200" {
		capacity = 6
	}
	if v := p.Card["hbm_bandwidth"]; v > 0 {
		capacity *= 1.1
	}
	capacity *= float64(p.Fleet.Replicas * p.System.TensorParallel)
	n, rate := p.Workload.Requests, p.Workload.Rate
	return metrics.Summary{
		Requests:          n,
		Completed:         n,
		Rate:              rate,
		ServedShare:       1,
		RequestThroughput: rate,
		PromptTokS:        2000 * rate,
		ThroughputTokS:    200 * rate,
		TTFT:              metrics.Stats{P99: rate / capacity},
		TBT:               metrics.Stats{P99: 0.03},
		Warnings:          []warn.Warning{},
	}, nil
}

// purchased is the question of the tests.
const purchased = `model = "llama3.1-8b"
[workload]
prompt_lengths = "fixed(2000)"
output_lengths = "fixed(200)"
rate = 20
requests = 400
[system]
preset = "vllm-0.15"
max_tokens = 8192
[slo]
ttft_s = 1
tbt_s = 0.1
[plan]
max_replicas = 8
[[axis]]
grid.gpu = ["a100-40gb", "h100-80gb", "h200"]
grid.system.tensor_parallel = [1, 2]
`

func TestPlanOfAPurchase(t *testing.T) {
	path := testkit.Write(t, "buy.toml", purchased)
	status, out, errs := runHere(t.Context(), shared, "plan", path)
	if status != exitOK || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	for _, name := range []string{"purchase.json", "candidates.csv", "trail.csv", "choice.toml",
		"plan.png", "plan-limits.png"} {
		if _, err := os.Stat(filepath.Join("out/plan/buy", name)); err != nil {
			t.Error(err)
		}
	}
	redrawn, drawn, errs := runHere(t.Context(), shared, "report", "out/plan/buy", "--format", "png",
		"--out", "again")
	if redrawn != exitOK || filepath.ToSlash(drawn) != "again/plan.png\nagain/plan-limits.png\n"+
		"again/pictures.csv\n" {
		t.Errorf("pictures: status %d, %q, stderr %q", redrawn, drawn, errs)
	}
	testkit.Golden(t, "plan-purchase.txt", filepath.ToSlash(out))
	reportSays(t, "out/plan/buy", out)
	// Another question has a folder of its own; in the same one it needs --force.
	testkit.Rewrite(t, path, strings.Replace(purchased, "max_replicas = 8", "max_replicas = 9", 1))
	if status, _, errs := runHere(t.Context(), shared, "plan", path); status != exitOK {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	in := []string{"plan", path, "--out", "out/plan/buy"}
	status, _, errs = runHere(t.Context(), shared, in...)
	if want := "sparseserve: out/plan/buy: holds the answer to another question (question.toml): " +
		"choose another folder, or give --force to replace them\n"; status != exitFailed || errs != want {
		t.Errorf("status %d, stderr %q", status, errs)
	}
	if status, _, errs := runHere(t.Context(), shared, append(in, "--force")...); status != exitOK {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	for _, dir := range []string{"out/plan/buy", "out/plan/buy-2"} {
		if _, err := os.Stat(filepath.Join(dir, "purchase.json")); err != nil {
			t.Error(err)
		}
	}
}

// TestPlanOfSessions: rates count sessions, and the command has the prefix cache that was planned.
func TestPlanOfSessions(t *testing.T) {
	path := testkit.Write(t, "buy.toml", strings.Replace(purchased, "[workload]",
		"sessions.turns = \"fixed(3)\"\n[workload]\ntrace = \"sessions\"", 1))
	set := []string{"--set", "prefix_cache.mode=vllm", "--set", "prefix_cache.dram_gib=8"}
	status, out, errs := runHere(t.Context(), shared, append([]string{"plan", path}, set...)...)
	if status != exitOK || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	for _, want := range []string{"load: 20 sessions/s, poisson, of 3 turns and 370 s between " +
		"them on average\n", "│ sessions/s │",
		"--gpu-memory-utilization 0.9 --kv-offloading-size 8 --kv-offloading-backend native\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	rates := strings.Replace(purchased, "[plan]\nmax_replicas = 8\n", "", 1)
	path = testkit.Write(t, "rate.toml", strings.Replace(rates, "[workload]",
		"seed = [1]\nsessions.turns = \"fixed(3)\"\n[workload]\ntrace = \"sessions\"", 1))
	status, out, _ = runHere(t.Context(), shared, "goodput", path)
	if status != exitOK || !strings.Contains(out, "│ sessions/s │") {
		t.Errorf("status %d, no sessions/s in\n%s", status, out)
	}
	reportSays(t, "out/goodput/rate", out)
}

func TestPlanOfNothing(t *testing.T) {
	path := testkit.Write(t, "buy.toml", strings.Replace(purchased, "tbt_s = 0.1", "tbt_s = 0.02", 1))
	status, out, errs := runHere(t.Context(), shared, "plan", path)
	if status != exitOK || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	testkit.Golden(t, "plan-nothing.txt", filepath.ToSlash(out))
	reportSays(t, "out/plan/buy", out)
}

func TestPlanOfAPurchaseJSON(t *testing.T) {
	path := testkit.Write(t, "buy.toml", purchased)
	status, out, errs := runHere(t.Context(), shared, "plan", path, "--json")
	var answer struct {
		Choice struct {
			Name       string
			Replicas   int
			USDPerHour float64 `json:"usd_per_hour"`
		}
		Candidates []map[string]any
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || status != exitOK || errs != "" {
		t.Fatalf("status %d, stderr %q, %v", status, errs, err)
	}
	if answer.Choice.Replicas == 0 || answer.Choice.USDPerHour == 0 || len(answer.Candidates) != 6 {
		t.Errorf("answer %+v", answer)
	}
}

// A rejected question leaves no folder.
func TestPlanRefusesBeforeItWrites(t *testing.T) {
	path := testkit.Write(t, "buy.toml", purchased)
	for _, set := range []string{"plan.prices=lambda", "slo.e2e_s=0.5", "plan.prices_file=none.toml",
		"system.tensor_parallel=3"} {
		status, out, errs := runHere(t.Context(), shared, "plan", path, "--set", set)
		if status != exitFailed || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: status %d, stdout %q, stderr %q", set, status, out, errs)
		}
		if _, err := os.Stat("out"); err == nil {
			t.Errorf("%s: left a folder", set)
		}
	}
}
