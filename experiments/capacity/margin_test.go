package capacity

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// thirds is a runner whose P99 TTFT is 1 s at 3 requests/s a replica, of 1,000 tokens in and 100
// out, and whose P99 TBT is 20 ms a 1,024 tokens of a step.
func thirds(_ context.Context, p config.Point, _ run.Sink) (metrics.Summary, error) {
	rate := p.Workload.Rate
	return metrics.Summary{Requests: p.Workload.Requests, Completed: p.Workload.Requests, Rate: rate,
		ServedShare: 1, RequestThroughput: rate, PromptTokS: 1000 * rate, ThroughputTokS: 100 * rate,
		TTFT: metrics.Stats{P99: rate / float64(3*p.Fleet.Replicas)},
		TBT:  metrics.Stats{P99: 0.02 * float64(p.System.MaxTokens) / 1024}}, nil
}

// asked is a question for A100s, of whose errors none is measured.
const asked = `model = "llama3.1-8b"
gpu = "a100-80gb"
[workload]
prompt_lengths = "fixed(1000)"
output_lengths = "fixed(100)"
rate = 10
requests = 40
[system]
preset = "vllm-0.15"
max_tokens = 1024
[slo]
ttft_s = 1
tbt_s = 0.1
[plan]
max_replicas = 16
`

// TestMargin: by hand. 12 requests/s within 0.85 s take 12 / (3 * 0.85) = 4.7, so 5 replicas, and 2
// to spare are 7; without any margin 10 / 3, so 4. At $1.79 an hour 7 are $12.53, over 10
// requests/s of 1,000 and 100 tokens.
func TestMargin(t *testing.T) {
	a, _ := purchase(t, t.TempDir(), asked+"spare = 2\n", 2, thirds)
	c := a.Choice
	if c == nil || a.Bare == nil {
		t.Fatalf("choice %+v, without a margin %+v", c, a.Bare)
	}
	near := func(x, y float64) bool { return math.Abs(x-y) < 1e-9*math.Abs(y) }
	if c.Replicas != 7 || a.Bare.Replicas != 4 || !near(c.USDPerHour, 7*1.79) ||
		!near(a.Bare.USDPerHour, 4*1.79) {
		t.Errorf("%d replicas at $%g, without a margin %d at $%g", c.Replicas, c.USDPerHour,
			a.Bare.Replicas, a.Bare.USDPerHour)
	}
	million := 7 * 1.79 / 3600 * 1e6
	if !near(c.USDPerMInput, million/10000) || !near(c.USDPerMOutput, million/1000) ||
		!near(c.USDPerMTotal, million/11000) {
		t.Errorf("$%g, %g, %g a million", c.USDPerMInput, c.USDPerMOutput, c.USDPerMTotal)
	}
	// Of the limits 7 replicas use 10/21 and 0.2 under the load; of the planned ones 5 use 12/15/0.85.
	if !near(c.Limits[0].Of, 10.0/21) || !near(c.Limits[1].Of, 0.2) ||
		!near(c.Planned[0].Of, 12/15.0/0.85) {
		t.Errorf("limits %+v, planned %+v", c.Limits, c.Planned)
	}
	if l := a.Limits[0]; l.AskedS != 1 || !near(l.PlannedS, 0.85) || l.Measured {
		t.Errorf("planned limit %+v", l)
	}
	if q := &a.Question; q.Prompts.Mean != 1000 || q.Outputs.P99 != 100 || q.Context != 131072 ||
		q.Load != "10 requests/s, poisson" || !slices.Equal(q.GPUs, []string{"a100-80gb"}) {
		t.Errorf("question %+v", q)
	}
	// As many as are needed without a margin are bought where none is wanted; the error stays: 10 /
	// (3 * 0.85) = 3.9.
	a, _ = purchase(t, t.TempDir(), asked+"headroom = 0\n", 2, thirds)
	if a.Choice == nil || a.Choice.Replicas != 4 || !near(*a.Choice.Headroom, 0) &&
		*a.Choice.Headroom > 0.05 {
		t.Errorf("choice %+v", a.Choice)
	}
}

// Errors that were measured are subtracted from limits in place of the assumed one.
func TestLimitsLessError(t *testing.T) {
	all, err := loadEvidence()
	if err != nil {
		t.Fatal(err)
	}
	h100 := all.Class[0]
	if h100.Name != "vLLM 0.15 on an H100" {
		t.Fatalf("the first class is %s", h100.Name)
	}
	for _, c := range []struct {
		gpu, slo string
		want     float64
	}{
		{"a100-80gb", "tbt_s = 0.1", 0.085}, // none measured: 15 %
		{"h100-80gb", "ttft_s = 2", 2*(1-h100.Error["ttft_p99"]) - h100.Late["ttft_p99"]},
		{"h100-80gb", "ttft_s = 2\nttft_stat = \"mean\"", 2 * (1 - h100.Error["ttft_mean"])},
		// The largest error of a statistic that was not measured by itself.
		{"h100-80gb", "ttft_s = 2\nttft_stat = \"p50\"", 2 * (1 - h100.Error["ttft_p90"])},
		{"h100-80gb", "e2e_s = 10\ne2e_stat = \"p95\"", 10 * (1 - h100.Error["e2e_p99"])},
		{"h100-80gb", "tbt_s = 0.1", 0.085},
	} {
		p := pointOf(t, fmt.Sprintf("model = \"llama3.1-8b\"\ngpu = %q\n[system]\n"+
			"preset = \"vllm-0.15\"\n[slo]\n%s\n", c.gpu, c.slo))
		slo, err := limitsOf(&p)
		if err != nil {
			t.Fatal(err)
		}
		less, err := slo.lessError(&p)
		if err != nil || math.Abs(less.bounds[0].Limit-c.want) > 1e-12 {
			t.Errorf("%s, %s: %g, want %g (%v)", c.gpu, c.slo, less.bounds[0].Limit, c.want, err)
		}
	}
}

// slowest finds the measured P99, in ms, and the error of the simulated one, in a quoted row.
var slowest = regexp.MustCompile(`[\d.]+, \S+ % \| ([\d.]+), -([\d.]+) % \|`)

// Every error that is subtracted is in the texts that say where it was measured.
func TestErrorsAreMeasured(t *testing.T) {
	all, err := loadEvidence()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all.Class {
		text := c.Measured + strings.Join(c.Quotes, " ")
		for name, late := range c.Late {
			row := slowest.FindStringSubmatch(text)
			if name != "ttft_p99" || row == nil {
				t.Errorf("%s: no quote has the %s of a server and of its simulation", c.Name, name)
				continue
			}
			measured, _ := strconv.ParseFloat(row[1], 64)
			short, _ := strconv.ParseFloat(row[2], 64)
			if math.Abs(late-measured*short/100/1000) > 1e-4 {
				t.Errorf("%s: %s = %g s, and the quote has %g %% of %g ms", c.Name, name, late, short,
					measured)
			}
		}
		for name, e := range c.Error {
			if !strings.Contains(text, fmt.Sprintf("%.1f", 100*e)) {
				t.Errorf("%s: %s = %g is in no quote", c.Name, name, e)
			}
		}
	}
}

// TestStepsAreTried: P99 TBT is 20 ms a 1,024 tokens of a step, 85 ms are planned for, so steps of
// 8,192 hold with no number of replicas and 4,096 do. The step size farthest from its limits is
// bought, unless a step size is set.
func TestStepsAreTried(t *testing.T) {
	free := strings.NewReplacer("max_tokens = 1024\n", "", "vllm-0.15", "vllm").Replace(asked)
	var done, all atomic.Int64
	a := bought(t, t.TempDir(), sweepIn(t, t.TempDir(), free), &Planner{Run: thirds, Workers: 2,
		Planned: func(n int) { all.Add(int64(n)) }, Finished: func() { done.Add(1) }})
	if a.Choice == nil || a.Choice.StepTokens > 4096 || a.Choice.Replicas != 5 ||
		!slices.Equal(a.Steps, []int{1024, 2048, 4096, 8192, 16384}) {
		t.Fatalf("choice %+v, tried %v", a.Choice, a.Steps)
	}
	if want := fmt.Sprintf("--max-num-batched-tokens %d ", a.Choice.StepTokens); !strings.Contains(
		a.Serve, want) {
		t.Errorf("%q has no %s", a.Serve, want)
	}
	if all.Load() != 5 || done.Load() != 5 {
		t.Errorf("%d of %d candidates done, want 5", done.Load(), all.Load())
	}
	set := strings.Replace(asked, "max_tokens = 1024", "max_tokens = 8192", 1)
	if a, _ := purchase(t, t.TempDir(), set, 2, thirds); a.Choice != nil || len(a.Steps) != 1 {
		t.Errorf("choice %+v, tried %v", a.Choice, a.Steps)
	}
}

// TestTooLongForTheContext: of uniform(2000, 6000) with 100 tokens out, 2,004 of 4,001 lengths do
// not fit into 4,096 tokens, 50.1 %.
func TestTooLongForTheContext(t *testing.T) {
	text := strings.NewReplacer("llama3.1-8b", "llama2-7b", "fixed(1000)",
		"uniform(2000, 6000)").Replace(asked)
	_, err := OffersOf(t.Context(), sweepIn(t, t.TempDir(), text))
	for _, want := range []string{"no candidate has room",
		"the context of 4096 tokens (of model llama2-7b: ",
		"rope_scaling", "max_context"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	var share float64
	if err != nil {
		_, after, _ := strings.Cut(err.Error(), "most, ")
		if _, scan := fmt.Sscanf(after, "%f", &share); scan !=
			nil || math.Abs(share-50.1) > 2 {
			t.Errorf("%g %% of the requests, want about 50.1 %% (%v): %v", share, scan, err)
		}
	}
	cut := strings.Replace(asked, "[system]", "[prefill]\nmax_prompt_tokens = 900\n[system]", 1)
	if _, err := OffersOf(t.Context(), sweepIn(t, t.TempDir(), cut)); err == nil ||
		!strings.Contains(err.Error(),
			"100 % of the requests are longer than prefill.max_prompt_tokens = 900; the longest prompt "+
				"has 1000") {
		t.Errorf("error %v", err)
	}
	// Where one candidate has room, the other is no offer and gives the reason.
	both := "[[axis]]\ngrid.model = [\"llama2-7b\", \"llama3.1-8b\"]\n"
	a, _ := purchase(t, t.TempDir(), text+both, 2, thirds)
	last := a.Candidates[len(a.Candidates)-1]
	if a.Choice == nil || a.Choice.Model != "llama3.1-8b" || last.Outcome != TooShort ||
		!strings.Contains(last.Reason, "of model llama2-7b: ") {
		t.Errorf("choice %+v, last %+v", a.Choice, last)
	}
	// 16 of 4,001 lengths are too long: a warning, the first.
	few, _ := purchase(t, t.TempDir(), strings.Replace(text, "uniform(2000, 6000)",
		"uniform(12, 4012)", 1), 2, thirds)
	if few.Choice == nil ||
		!strings.Contains(few.Warnings[0].Text, "% of the requests are longer than") {
		t.Errorf("choice %+v, warnings %q", few.Choice, few.Warnings)
	}
}

// TestNoGPUsForPreemptions: with vLLM's prefix cache, which keeps the KV of preempted requests, one
// H100 at $3.85 serves the load within its limits. Without the cache it preempts and takes more.
// The default headroom buys more than that H100, and the answer still names it as the cheapest.
func TestNoGPUsForPreemptions(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	text, err := os.ReadFile("testdata/thrash.toml")
	if err != nil {
		t.Fatal(err)
	}
	exact := strings.Replace(string(text), "[plan]", "[plan]\nheadroom = 0", 1)
	a, _ := purchase(t, t.TempDir(), exact, 2, run.NewSimulator().Run)
	if c := a.Choice; c == nil || c.GPU != "h100-80gb" || c.GPUs != 1 || c.USDPerHour != 3.85 ||
		c.Axes["prefix_cache.mode"] != "vllm" || strings.Contains(a.Serve, "--no-enable-prefix") {
		t.Errorf("without headroom: choice %+v, %s", c, a.Serve)
	}
	a, _ = purchase(t, t.TempDir(), string(text), 2, run.NewSimulator().Run)
	if b := a.Bare; b == nil || b.GPU != "h100-80gb" || b.GPUs != 1 || b.USDPerHour != 3.85 ||
		a.Choice == nil || a.Choice.USDPerHour < b.USDPerHour {
		t.Errorf("with headroom: choice %+v, without a margin %+v", a.Choice, b)
	}
}
