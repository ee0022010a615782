package capacity

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/experiments/bracket"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// papers is the service level of the papers: 1 s for P99 TBT, 2 s for the mean delay.
func papers() limits {
	slo := config.SLO{TBTS: 1, TBTStat: "p99", DelayS: 2, DelayStat: "mean"}
	return limits{config.SLO{MissShare: 0.01}, slo.Bounds(0)}
}

// crossing is a search over seeds whose scheduling delay passes the limit of 2
// s at rates of their own.
func crossing(spec config.GoodputSearch, thresholds ...float64) *search {
	s := &search{spec: spec}
	for i := range thresholds {
		s.seeds = append(s.seeds, uint64(i+1))
	}
	s.probe = func(_ context.Context, stage string, rate float64, seeds []uint64) (*attempt, error) {
		a := &attempt{stage: stage, load: rate, slo: papers()}
		for _, seed := range seeds {
			a.trials = append(a.trials,
				Trial{Seed: seed, Bounded: []float64{0.5, 2 * rate / thresholds[seed-1]}, Completed: 300})
		}
		return a, nil
	}
	return s
}

// TestSearchFindsTheThreshold: whatever the start, the bracket closes on where
// the mean over seeds crosses the limit, and on each seed's own crossing.
func TestSearchFindsTheThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := config.DefaultGoodputSearch()
		spec.Start = rapid.Float64Range(0.01, 20).Draw(t, "start")
		spec.Width = rapid.SampledFrom([]float64{0.01, 0.02, 0.1}).Draw(t, "width")
		thresholds := rapid.SliceOfN(rapid.Float64Range(0.05, 50), 3, 5).Draw(t, "thresholds")
		s := crossing(spec, thresholds...)
		if err := s.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		inverse := 0.0
		for _, x := range thresholds {
			inverse += 1 / x / float64(len(thresholds))
		}
		near := func(what string, got, want float64) {
			if got > want || got < want/(1+spec.Width)*0.999 {
				t.Fatalf("%s is %g, want at most %g and within %g of it", what, got, want, spec.Width)
			}
		}
		low, _ := bracket.Ends(s.outcomes())
		near("goodput", low, 1/inverse)
		for i, seed := range s.seeds {
			own, _ := bracket.Ends(s.seedOutcomes(seed, s.own[seed]))
			near("goodput of a seed", own, thresholds[i])
		}
		if warnings := s.warnings(300); len(warnings) > 0 {
			t.Fatalf("warnings %q", warnings)
		}
	})
}

// A coarse search runs the rates that its bracket needs, and nothing else.
func TestCoarseSearch(t *testing.T) {
	spec := config.DefaultGoodputSearch()
	spec.Start, spec.Width = 0.05, 0.1
	fine := crossing(spec, 0.2, 0.3, 0.4)
	if err := fine.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	spec.Coarse = true
	s := crossing(spec, 0.2, 0.3, 0.4)
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	low, high := bracket.Ends(s.outcomes())
	if want, _ := bracket.Ends(fine.outcomes()); low != want || high-low > spec.Width*low {
		t.Errorf("bracket %g to %g, want one from %g", low, high, want)
	}
	if len(s.own) > 0 || len(s.shared) >= len(fine.shared) {
		t.Errorf("%d runs at shared rates and of %d seeds, want fewer than %d and none", len(s.shared),
			len(s.own), len(fine.shared))
	}
	for _, a := range s.shared {
		if a.stage == stageCheck {
			t.Errorf("checked %g requests/s", a.load)
		}
	}
}

// Near the goodput a search needs two rates where nothing changed, and finds what is far away.
func TestSearchNearby(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := config.DefaultGoodputSearch()
		spec.Start, spec.Width, spec.Coarse, spec.Near = 1, 0.05, true, true
		threshold := rapid.Float64Range(0.05, 20).Draw(t, "threshold")
		s := crossing(spec, threshold)
		if err := s.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		low, high := bracket.Ends(s.outcomes())
		if low > threshold || high < threshold || high-low > spec.Width*low*1.001 {
			t.Fatalf("bracket %g to %g of %g", low, high, threshold)
		}
		if rates := len(s.shared); threshold >= 1 && threshold < 1.05 && rates != 2 || rates > 14 {
			t.Fatalf("%d rates for %g", rates, threshold)
		}
	})
}

// TestSearchUnderNoise: with a delay that is off by 5 % from rate to rate, the
// goodput is within 10 % of the threshold.
func TestSearchUnderNoise(t *testing.T) {
	spec := config.DefaultGoodputSearch()
	spec.Start = 0.05
	s := crossing(spec, 0.3, 0.3, 0.3)
	exact := s.probe
	s.probe = func(ctx context.Context, stage string, rate float64, seeds []uint64) (*attempt, error) {
		a, err := exact(ctx, stage, rate, seeds)
		for i := range a.trials {
			a.trials[i].Bounded[1] *= 1 + 0.05*math.Sin(1e5*rate+float64(a.trials[i].Seed))
		}
		return a, err
	}
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if low, _ := bracket.Ends(s.outcomes()); math.Abs(low-0.3) > 0.03 {
		t.Errorf("goodput %g, want 0.3 within 10 %%", low)
	}
}

func TestSearchEnds(t *testing.T) {
	for _, c := range []struct {
		name      string
		threshold float64
		edit      func(*config.GoodputSearch)
		want      float64
		warning   string
	}{
		{"never fails", 1e9, func(g *config.GoodputSearch) { g.Max = 3 }, 3, "the service level holds " +
			"at every rate tried; the goodput is at least 3 requests/s"},
		{"never holds", 1e-9, func(*config.GoodputSearch) {}, 0, "the service level fails at every " +
			"rate tried, down to 0.001563 requests/s"},
	} {
		spec := config.DefaultGoodputSearch()
		spec.Start = 0.1
		c.edit(&spec)
		s := crossing(spec, c.threshold, c.threshold, c.threshold)
		if err := s.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if low, _ := bracket.Ends(s.outcomes()); low != c.want {
			t.Errorf("%s: goodput %g, want %g", c.name, low, c.want)
		}
		if got := warn.Texts(s.warnings(300)); !slices.Equal(got, []string{c.warning}) {
			t.Errorf("%s: warnings %q", c.name, got)
		}
	}
}

// TestSearchReportsTurningOutcomes: a service level that holds again above a
// failure, as seen by a check and with one seed.
func TestSearchReportsTurningOutcomes(t *testing.T) {
	spec := config.DefaultGoodputSearch()
	spec.Start = 0.1
	s := crossing(spec, 0.3, 0.3, 0.3)
	exact := s.probe
	s.probe = func(ctx context.Context, stage string, rate float64, seeds []uint64) (*attempt, error) {
		a, err := exact(ctx, stage, rate, seeds)
		for i := range a.trials {
			if all := rate > 0.32 && rate < 0.35; all || a.trials[i].Seed == 2 && rate == 0.4 {
				a.trials[i].Bounded[1] = 1.9
			}
		}
		return a, err
	}
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	low, high := bracket.Ends(s.outcomes())
	if low > 0.3 || high < 0.3 || high > 0.31 {
		t.Errorf("bracket %g to %g, want the lower crossing at 0.3", low, high)
	}
	warnings := strings.Join(warn.Texts(s.warnings(300)), "\n")
	for _, want := range []string{"not monotone: ", "not monotone with seed 1: ",
		"not monotone with seed 2: 0.3032 requests/s fails and 0.4 holds"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no %q in:\n%s", want, warnings)
		}
	}
}

func TestWhyARateIsNotSustained(t *testing.T) {
	slo := papers()
	ok := Trial{Bounded: []float64{0.5, 1}, Completed: 9}
	with := func(edit func(*Trial)) Trial { t := ok; edit(&t); return t }
	late := with(func(t *Trial) { t.Bounded = []float64{0.5, 2.5} })
	slow := with(func(t *Trial) { t.Bounded = []float64{3, 1} })
	growing := with(func(t *Trial) { t.Unstable = true })
	none := with(func(t *Trial) { t.Completed = 0 })
	slowest := with(func(t *Trial) { t.Bounded = []float64{3, 4} })
	picky := with(func(t *Trial) { t.Rejected, t.Completed = 0.04, 320 })
	for _, c := range []struct {
		trials []Trial
		want   string
	}{
		{[]Trial{ok, ok, ok}, ""},
		{[]Trial{late, ok, ok}, ""}, // by the mean
		{[]Trial{late, late, late}, "delay"},
		{[]Trial{slow, ok, ok}, "tbt"},
		{[]Trial{slowest, late, late, late}, "tbt and delay"},
		{[]Trial{picky, picky, picky}, "rejected"},
		{[]Trial{picky, ok, ok, ok}, ""}, // 1 % by the mean
		{[]Trial{growing, ok, ok}, ""},
		{[]Trial{growing, growing, ok}, "queue"},
		{[]Trial{growing}, "queue"},
		{[]Trial{ok, none, ok}, "nothing completed"},
	} {
		if got := strings.Join(slo.why(c.trials), " and "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.trials, got, c.want)
		}
	}
}

// TestRequestsMeetTheLevel: with slo.rule = "requests" the share of requests decides, whatever
// the statistics are.
func TestRequestsMeetTheLevel(t *testing.T) {
	slo := papers()
	slo.Rule = config.SLORequests
	for _, c := range []struct {
		missed, rejected float64
		want             string
	}{{0.01, 0, ""}, {0.011, 0, "requests"}, {0.02, 0.015, "rejected"}} {
		trial := Trial{Bounded: []float64{9, 9}, Completed: 9, Missed: c.missed, Rejected: c.rejected}
		if got := strings.Join(slo.why([]Trial{trial}), " and "); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestTInterval(t *testing.T) {
	low, high := tInterval([]float64{10, 11, 12}, 0.95)
	const half = 4.302653 / 1.7320508 // t(0.975, 2) / sqrt(3), standard deviation 1
	if math.Abs(low-(11-half)) > 1e-5 || math.Abs(high-(11+half)) > 1e-5 {
		t.Errorf("%g to %g, want 11 ± %g", low, high, half)
	}
	if low, _ := tInterval([]float64{1, 2, 3}, 0.95); low != 0 {
		t.Errorf("low is %g, want 0: no rate is below", low)
	}
}

func TestCandidates(t *testing.T) {
	text := `seed = [4, 5]
[workload]
rate = [0.2, 0.1]
[system]
preset = ["vllm", "sparseserve"]
[[axis]]
grid.gpu = ["a100-40gb", "h200"]
grid.workload.requests = [5, 6]
`
	load := func(text string, sets ...string) []Candidate {
		c, err := Candidates(t.Context(), mustSweep(t, testkit.Write(t, "s.toml", text), sets...))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load(text)
	if len(c) != 8 || c[7].Label() != "sparseserve gpu=h200 requests=6" || c[7].Point.GPU != "h200" {
		t.Fatalf("%d candidates, the last is %q", len(c), c[len(c)-1].Label())
	}
	if c[0].Start != 0.1 || !slices.Equal(c[0].Seeds, []uint64{4, 5}) {
		t.Errorf("starts at %g with seeds %v", c[0].Start, c[0].Seeds)
	}
	// Rates of an axis make no candidates.
	c = load("[system]\npreset = \"vllm\"\n[[axis]]\ngrid.workload.rate = [0.3, 0.2]\ngrid.gpu = " +
		"[\"h200\"]\n")
	if len(c) != 1 || c[0].Label() != "vllm gpu=h200" || c[0].Start != 0.2 || len(c[0].Settings) != 1 {
		t.Errorf("candidates %+v", c)
	}
	if !slices.Equal(c[0].Seeds, []uint64{1, 2, 3}) {
		t.Errorf("seeds %v, want three where none are given", c[0].Seeds)
	}
	if c = load("", "goodput.start=0.7"); c[0].Start != 0.7 {
		t.Errorf("starts at %g", c[0].Start)
	}
	twice := mustSweep(t, testkit.Write(t, "s.toml",
		"[[axis]]\ngrid.offload.working_set_steps = [4, 8, 4]\n"),
		"system.preset=vllm")
	if _, err := Candidates(t.Context(), twice); err == nil ||
		!strings.Contains(err.Error(), "runs twice: with offload.working_set_steps = 4") {
		t.Errorf("a candidate that stands there twice: error %v", err)
	}
}

func TestReplayedTimesHaveNoGoodput(t *testing.T) {
	path := testkit.Write(t, "trace.csv",
		"arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,10\n1,100,10\n")
	_, err := Candidates(t.Context(), mustSweep(t, "default", "workload.trace="+path,
		"workload.arrivals=trace"))
	if err == nil || !strings.Contains(err.Error(), `workload.arrivals = "trace": arrivals as recorded have no rate`) {
		t.Errorf("error %v", err)
	}
}
