package config

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// paperSLO is the service level of a configuration that names none.
func paperSLO(t *testing.T) SLO {
	t.Helper()
	return mustLoad(t, "")[0].SLO
}

// TestSLO: what a run misses of a service level whose decode iteration has 30 ms.
func TestSLO(t *testing.T) {
	papers := paperSLO(t)
	with := func(edit func(*SLO)) SLO { s := papers; edit(&s); return s }
	median := with(func(s *SLO) { s.DelayStat = "p50" })
	absolute := with(func(s *SLO) { s.TBTS = 0.1 })
	ttft := with(func(s *SLO) { s.TTFTS, s.TBTFactor, s.DelayS = 3, 0, 0 })
	run := func(completed int, tbt, delayMean, delayP50 float64) *metrics.Summary {
		return &metrics.Summary{Completed: completed, TBT: metrics.Stats{P99: tbt},
			QueueDelay: metrics.Stats{Mean: delayMean, P50: delayP50}}
	}
	rejecting := func(n int) *metrics.Summary {
		return &metrics.Summary{Completed: 100 - n,
			Rejected: n}
	}
	for _, c := range []struct {
		name string
		slo  SLO
		run  *metrics.Summary
		want string
	}{
		{"at both limits", papers, run(1, 0.75, 2, 9), ""},
		{"slow tokens", papers, run(1, 0.76, 2, 0), "tbt"},
		{"long mean delay", papers, run(1, 0.1, 2.1, 0), "delay"},
		{"both", papers, run(1, 0.76, 2.1, 0), "tbt delay"},
		{"median ignores the mean", median, run(1, 0.1, 9, 2), ""},
		{"long median delay", median, run(1, 0.1, 0, 2.1), "delay"},
		{"absolute bound", absolute, run(1, 0.2, 0, 0), "tbt"},
		{"nothing finished", papers, run(0, 0, 0, 0), "nothing completed"},
		{"one in a hundred rejected", papers, rejecting(1), ""},
		{"two in a hundred rejected", papers, rejecting(2), "rejected"},
		{"TTFT alone", ttft, &metrics.Summary{Completed: 1, TTFT: metrics.Stats{P99: 3.1},
			TBT: metrics.Stats{P99: 9}}, "ttft"},
	} {
		if got := strings.Join(c.slo.Missed(c.run, c.slo.Bounds(0.03)), " "); got != c.want {
			t.Errorf("%s: missed %q", c.name, got)
		}
	}
}

// TestRequestsRule: every request is held to all bounds, a rejected one misses them.
func TestRequestsRule(t *testing.T) {
	c := mustLoad(t, "", "slo.rule=requests", "slo.ttft_s=1", "slo.tbt_s=0.1",
		"slo.tpot_s=0.05", "slo.e2e_s=3", "slo.delay_s=0.5", "slo.miss_share=0.5")[0]
	bounds := c.SLO.Bounds(0)
	const ms = des.Millisecond
	good := metrics.Request{Output: 41, Scheduled: 500 * ms, FirstToken: 1000 * ms,
		LastToken: 3000 * ms, LongestTBT: 100 * ms}
	for name, c := range map[string]struct {
		edit func(*metrics.Request)
		want bool
	}{
		"at every bound":   {func(*metrics.Request) {}, true},
		"late first token": {func(r *metrics.Request) { r.FirstToken++ }, false},
		"one long gap":     {func(r *metrics.Request) { r.LongestTBT++ }, false},
		"slow tokens":      {func(r *metrics.Request) { r.Output = 40 }, false},
		"late end":         {func(r *metrics.Request) { r.LastToken++ }, false},
		"long wait":        {func(r *metrics.Request) { r.Scheduled++ }, false},
	} {
		r := good
		c.edit(&r)
		if got := Good(bounds, &r); got != c.want {
			t.Errorf("%s: good is %v", name, got)
		}
	}
	half, less := 0.5, 0.49
	sum := metrics.Summary{Completed: 60, Rejected: 40, GoodShare: &half,
		TTFT: metrics.Stats{P99: 100}}
	if missed := c.SLO.Missed(&sum, bounds); len(missed) > 0 {
		t.Errorf("missed %q where half of the requests may", missed)
	}
	sum.GoodShare = &less
	if missed := c.SLO.Missed(&sum, bounds); len(missed) != 1 || missed[0] != "requests" {
		t.Errorf("missed %q, want requests", missed)
	}
}

// TestOwnBounds: naming a bound drops the built-in ones; a statistic alone changes which statistic
// is bounded.
func TestOwnBounds(t *testing.T) {
	for set, want := range map[string]string{
		"":                   "p99 tbt, mean delay",
		"slo.ttft_s=3":       "p99 ttft",
		"slo.tbt_s=0.2":      "p99 tbt",
		"slo.delay_stat=p90": "p99 tbt, p90 delay",
		"slo.miss_share=0.1": "p99 tbt, mean delay",
		"slo.tbt_factor=10":  "p99 tbt",
		"slo.rule=requests":  "each tbt, each delay",
		"slo.e2e_s=60":       "p99 e2e",
		"slo.tpot_s=0.05":    "p99 tpot",
		"slo.delay_s=1":      "mean delay",
		"slo.ttft_s=0":       "",
	} {
		var sets []string
		if set != "" {
			sets = []string{set}
		}
		c := mustLoad(t, "", sets...)[0]
		var got []string
		for _, b := range c.SLO.Bounds(0.03) {
			got = append(got, b.Stat+" "+b.Name)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: bounds %q, want %q", set, got, want)
		}
	}
	if c := mustLoad(t, "", "slo.e2e_s=9", "slo.ttft_stat=p50")[0]; len(c.Warnings) != 1 ||
		!strings.Contains(c.Warnings[0].Text, "slo.ttft_stat=p50: has no effect") {
		t.Errorf("a statistic without its bound: %q", c.Warnings)
	}
}
