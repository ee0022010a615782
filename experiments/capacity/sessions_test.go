package capacity

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces"
)

// TestSteadyAt works out how long runs are: ten times the requests in flight, and of sessions ten
// times as long as the session of a turn lasts.
func TestSteadyAt(t *testing.T) {
	sessions := func(turns string, w traces.Spec) traces.Spec {
		w.Trace, w.Turns, w.Arrivals = traces.Sessions, turns, traces.ArrivalsPoisson
		if w.Concurrency > 0 {
			w.Arrivals = traces.ArrivalsClosed
		}
		return w
	}
	for _, c := range []struct {
		w    traces.Spec
		want int
	}{
		{traces.Spec{Trace: traces.BuiltIn, Rate: 2, Arrivals: traces.ArrivalsPoisson}, 10 * 2 * 1},
		{traces.Spec{Trace: traces.BuiltIn, Concurrency: 8, Arrivals: traces.ArrivalsClosed}, 10 * 8},
		{sessions("fixed(1)", traces.Spec{Rate: 2, ThinkS: 20}), 10 * 2 * 1},
		// 10 x 2 sessions/s x 6 turns x (5 x (20 + 1) + 1) s = 12,720
		{sessions("fixed(6)", traces.Spec{Rate: 2, ThinkS: 20}), 13_000},
		// E[M] = 2, E[M^2] = 14/3: 10 x 3 x 2 x (4/3 x (5 + 1) + 1) = 540
		{sessions("uniform(1, 3)", traces.Spec{Rate: 3, ThinkS: 5}), 540},
		{sessions("fixed(6)", traces.Spec{Concurrency: 8, ThinkS: 20}), 10 * 8 * 6},
	} {
		if n := steadyAt(&c.w, 1); n != c.want {
			t.Errorf("%+v: %d requests, want %d", c.w, n, c.want)
		}
	}
}

// talks is a plan whose turns come faster the longer it runs: 2 sessions/s are 8 turns/s after
// 24 s, when 40 requests have long been sent.
const talks = `model = "llama3.1-8b"
[workload]
trace = "sessions"
prompt_lengths = "fixed(1500)"
output_lengths = "fixed(40)"
think_s = 8
rate = 2
requests = 40
[sessions]
turns = "fixed(4)"
system_prompts = 0
[system]
preset = "vllm-0.15"
max_tokens = 8192

[prefix_cache]
mode = "vllm"
[slo]
ttft_s = 1
[plan]
max_replicas = 6
[[axis]]
grid.gpu = ["a100-40gb"]
`

// TestPurchaseOfSessions: what is bought holds sessions that go on for long, one replica less does
// not, and a token costs what the output of such a run does.
func TestPurchaseOfSessions(t *testing.T) {
	t.Parallel()
	simulate := run.NewSimulator().Run
	a, s := purchase(t, t.TempDir(), strings.Replace(talks, "ttft_s = 1\n", "ttft_s = 1.2\n", 1), 2,
		simulate)
	if a.Choice == nil {
		t.Fatal("nothing is bought")
	}
	if a.LoadUnit != "sessions/s" || a.Load != "2 sessions/s, poisson" {
		t.Errorf("load %q in %s", a.Load, a.LoadUnit)
	}
	candidates, err := UnderLoad(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	slo, err := limitsOf(&candidates[0].Point)
	if err != nil {
		t.Fatal(err)
	}
	if slo, err = slo.lessError(&candidates[0].Point); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{a.Choice.Replicas, a.Choice.Replicas - 1} {
		p := withLoad(candidates[0].Point, n, 2*1.2, 0)
		p.Workload.Requests, p.Workload.Sessions, p.Seed = 0, 1000, 1
		if n == 0 {
			t.Fatal("one replica is enough: the test compares nothing")
		}
		if holds, near, _ := served(t, &p, slo, simulate); holds != (n == a.Choice.Replicas) {
			t.Errorf("%d replicas for 1000 sessions: hold %v, %.3g of the limit", n, holds, near)
		}
	}
	// 2 sessions/s of 4 turns of 40 tokens
	if want := a.Choice.USDPerHour / 3600 / (2 * 4 * 40) * 1e6; math.Abs(
		a.Choice.USDPerMOutput/want-1) > 1e-3 {
		t.Errorf("$%g a million tokens, want $%g", a.Choice.USDPerMOutput, want)
	}
}

// TestGoodputOfSessions: runs of a search for the largest rate are as long as sessions need.
func TestGoodputOfSessions(t *testing.T) {
	text, _, _ := strings.Cut(talks, "[plan]")
	s := sweepIn(t, t.TempDir(), strings.Replace(text, "[workload]",
		"gpu = \"h200\"\nseed = [1]\n[workload]", 1))
	candidates, store := opened(t, s)
	p := Planner{Store: store, Workers: 1, Run: func(_ context.Context, p config.Point, _ run.Sink) (
		metrics.Summary, error) {
		w := &p.Workload
		if least := steadyAt(w, 0); w.Requests < least {
			t.Errorf("%d requests at %g sessions/s, want %d", w.Requests, w.Rate, least)
		}
		return metrics.Summary{Requests: w.Requests, Completed: w.Requests, E2E: metrics.Stats{Mean: 2},
			TTFT: metrics.Stats{P99: w.Rate / 5}}, nil
	}}
	found, err := p.Do(t.Context(), s.Goodput, candidates)
	if err != nil {
		t.Fatal(err)
	}
	w := candidates[0].Point.Workload
	w.Rate = found[0].Goodput
	if g := &found[0]; g.Unit != "sessions/s" || math.Abs(g.Goodput-5) > 0.5 ||
		g.Requests != steadyAt(&w, 2) {
		t.Errorf("%g %s of %d requests, want about 5 sessions/s of %d", g.Goodput, g.Unit,
			g.Requests, steadyAt(&w, 2))
	}
}

// TestSessionsTooLong: a load whose sessions need longer runs than there are is refused, and a file
// that is too short for its conversations is named.
func TestSessionsTooLong(t *testing.T) {
	s := sweepIn(t, t.TempDir(), talks, "workload.rate=500", "workload.think_s=1000")
	if _, err := OffersOf(t.Context(), s); err == nil ||
		!strings.Contains(err.Error(), "workload.rate = 500: ") {
		t.Errorf("error %v", err)
	}
	w := traces.DefaultSpec()
	w.Trace, w.ThinkS, w.Rate, w.Requests = "../../traces/testdata/sharegpt.json", 60, 2, 0
	if text := shortRun(&w, 5, 1); !strings.HasPrefix(text, "workload.trace: 5 requests are too few") {
		t.Errorf("%q, of sessions of %+v", text, turnsOf(&w))
	}
	if unit := RateUnit(&w); unit != "sessions/s" {
		t.Errorf("rates in %s", unit)
	}
	staged := w
	staged.Stages = [][]float64{{100, 1}, {100, 2}}
	if text := shortRun(&staged, 300, 1); !strings.HasPrefix(text, "workload.stages: 200 s ") {
		t.Errorf("%q, of stages", text)
	}
	w.Trace = traces.BuiltIn
	if unit, text := RateUnit(&w), shortRun(&w, 5, 1); unit != "requests/s" || text != "" {
		t.Errorf("rates in %s; %q", unit, text)
	}
}
