package whatif

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/bracket"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Both sides of a threshold, simulated by themselves, have the answers that it says.
func TestThresholdsHoldOnBothSides(t *testing.T) {
	path, alone := write(t, small), write(t, withoutSearch())
	level := func(sums []metrics.Summary) bool {
		return !slices.ContainsFunc(sums, func(s metrics.Summary) bool { return !*s.SLOMet })
	}
	mean := func(sums []metrics.Summary, of func(*metrics.Summary) float64) float64 {
		total := 0.0
		for i := range sums {
			total += of(&sums[i])
		}
		return total / float64(len(sums))
	}
	metric, _ := MetricNamed("e2e_mean")
	for _, c := range []struct {
		name string
		sets []string // of the study and of the runs alone
		vary string
		side func(setting string, sets []string) bool
	}{
		{"dram", nil, "system.dram_gib=0.25..16", func(v string, sets []string) bool {
			return level(plain(t, alone, append(sets, "system.dram_gib="+v)...))
		}},
		{"budget", []string{"slo.tbt_s=0.178"}, "budget=512..4096", func(v string, sets []string) bool {
			sums := plain(t, alone, append(sets, "selection.budget_tokens="+v)...)
			return mean(sums, func(s *metrics.Summary) float64 { return s.TBT.P99 }) <= 0.178
		}},
		{"offload-link", []string{"system.kv_gib=0.8"}, "link=0.01..8", func(v string,
			sets []string) bool {
			factor, _ := number(v)
			link := []string{"card.link_h2d=" + text(25.1*factor), "card.link_d2h=" + text(25*factor)}
			with := plain(t, alone, slices.Concat(sets, link)...)
			without := plain(t, alone, slices.Concat(sets, link, []string{"offload.on=false"})...)
			return mean(with, metric.of) < mean(without, metric.of)
		}},
	} {
		if testing.Short() && c.name != "dram" {
			continue // seconds
		}
		found := carryOut(t, &Study{Config: path, Set: c.sets, Metric: "e2e_mean",
			Vary: []string{c.vary}, Thresholds: []string{c.name}})
		x := found.Cases[0].Thresholds[0]
		t.Logf("%s: %s, of %d tries", c.name, x.Text, len(x.Tried))
		// Seeds that disagree up to the end of the range leave one side unknown: large budgets.
		if x.Holds == nil || (x.Fails == nil) != (c.name == "budget") {
			t.Errorf("%s: no threshold in %s: %+v", c.name, c.vary, x.Tried)
			continue
		}
		if x.Holds != nil && !c.side(x.Holds.Setting, slices.Clone(c.sets)) ||
			x.Fails != nil && c.side(x.Fails.Setting, slices.Clone(c.sets)) {
			t.Errorf("%s: %s does not hold by itself", c.name, x.Text)
		}
		if x.Holds != nil && x.Fails != nil {
			neighbours(t, x)
		}
	}
}

// neighbours checks that all that was tried between the sides of a crossing is undecided, and that
// each side is within 2 % of what is beyond it.
func neighbours(t *testing.T, x *Crossing) {
	t.Helper()
	low, high := *x.Low, *x.High
	after, before := high, low
	for _, a := range x.Tried {
		v, _ := number(a.Setting)
		if low < v && v < high {
			after, before = min(after, v), max(before, v)
			if a.Verdict != bracket.Undecided {
				t.Errorf("%s: %s at %s, between the sides", x.Name, a.Verdict, a.Setting)
			}
		}
	}
	if low >= high || after > 1.021*low+1 || high > 1.021*before+1 {
		t.Errorf("%s: between %v and %v, %v to %v are known to be undecided", x.Name, low, high, after,
			before)
	}
}

// Of a server whose P99 TBT is a ten-thousandth of a second a token of the budget, a bound of 0.1 s
// holds up to 1,000 tokens.
func TestThresholdIsAtItsBound(t *testing.T) {
	e := newPlanner(t)
	e.Run = func(_ context.Context, p config.Point, _ run.Sink) (metrics.Summary, error) {
		return metrics.Summary{Requests: 8, Completed: 8, SLOMet: new(true),
			TBT: metrics.Stats{P99: float64(p.System.Selection.BudgetTokens) / 1e4}}, nil
	}
	found, err := (&Study{Config: write(t, small), Set: []string{"slo.tbt_s=0.1"}, Metric: "e2e_mean",
		Vary: []string{"budget=512..4096"}, Thresholds: []string{"budget"}}).Do(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	x := found.Cases[0].Thresholds[0]
	if x.Holds == nil || x.Fails == nil || x.Holds.Value > 0.1 || x.Fails.Value <= 0.1 ||
		x.Holds.Value < 0.097 || x.Fails.Value > 0.103 || x.Holds.Against != 0.1 {
		t.Errorf("holds at %+v, fails at %+v: %s", x.Holds, x.Fails, x.Text)
	}
}

// A threshold known between two values is both: the search ends within 2 % of each.
func TestCrossingIsAnInterval(t *testing.T) {
	for name, c := range map[string]struct {
		fails, holds float64 // below and above which it is known
		low, high    float64 // 0: not in the range of 1 to 100
		text         string
	}{
		"inside":      {10, 20, 10, 20, "; between them it is undecided"},
		"a point":     {10, 10, 10, 10, ""},
		"no top":      {10, 1000, 10, 0, "undecided at 10"},
		"no bottom":   {0.5, 20, 0, 20, "undecided at rate = 19"},
		"nothing":     {0.5, 1000, 0, 0, "undecided at rate = 1 and at 100: no threshold between"},
		"fails":       {1000, 2000, 1, 100, "no at rate = 1 and at 100: no threshold between"},
		"one step up": {3.1, 3.3, 3.1, 3.3, "; between them it is undecided"},
	} {
		r, err := ParseRange("rate=1..100")
		if err != nil {
			t.Fatal(err)
		}
		th := test{Threshold: &Threshold{Yes: "yes", No: "no"}, width: fineWidth, r: r}
		x, err := th.find(func(value string) (Answer, error) {
			a := Answer{Setting: value, Verdict: bracket.Undecided}
			v, err := number(value)
			if v < c.fails {
				a.Verdict = bracket.Fails
			} else if v >= c.holds {
				a.Verdict = bracket.Holds
			}
			return a, err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, side := range []struct {
			what string
			got  *float64
			want float64
		}{{"low", x.Low, c.low}, {"high", x.High, c.high}} {
			if (side.got == nil) != (side.want == 0) ||
				side.got != nil && math.Abs(*side.got/side.want-1) > 0.021 {
				t.Errorf("%s: %s is %v, want %v: %s", name, side.what, side.got, side.want, x.Text)
			}
		}
		if !strings.Contains(x.Text, c.text) {
			t.Errorf("%s: %q, want %q in it", name, x.Text, c.text)
		}
	}
}
