package cli

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// Details have every latency at every statistic and all rates, as means over the seeds that served
// requests; what no system has is no column.
func TestDetails(t *testing.T) {
	good := 0.75
	of := func(system string, served int, add float64) sim.Summary {
		stats := func(v float64) sim.Stats {
			return sim.Stats{Mean: v + add, P50: v + 1 + add, P90: v + 2 + add, P95: v + 3 + add,
				P99: v + 4 + add}
		}
		return sim.Summary{System: system, Rate: 1, Completed: served, Rejected: 9 - served,
			TTFT: stats(11), TBT: stats(.021),
			TPOT: stats(.031), E2E: stats(41), QueueDelay: stats(51), RequestThroughput: 0.9,
			RequestGoodput: &good,
			PromptTokS:     1234, ThroughputTokS: 56, TotalTokS: 1290}
	}
	proxy := of("sparse", 9, 0)
	proxy.RecallProxy, proxy.DRAMUse = &sim.RecallProxy{Mean: 0.98}, &sim.Use{Mean: 0.125, Peak: 0.5}
	proxy.PrefixCache = &sim.PrefixStats{PromptTokens: 200, HitTokens: 80,
		DRAM: sim.PrefixTier{HitTokens: 60}}
	sums := []sim.Summary{of("dense", 9, 0), of("dense", 9, 2), of("dense", 0, 100), proxy}
	var out strings.Builder
	printDetails(&out, sums, "req/s")
	flat := strings.Join(strings.Fields(strings.ReplaceAll(out.String(), "│", " ")), " ")
	for _, want := range []string{
		"1 dense TTFT, s 12.0 13.0 14.0 15.0 16.0", "TBT, ms 1021 2021", "TPOT, ms 1031",
		"end to end, s 42.0 43.0 44.0 45.0 46.0",
		"sched. delay, s 52.0", "1 sparse TTFT, s 11.0",
		"served in SLO input output total DRAM cached DRAM SSD recall",
		"dense 0.900 0.750 1234 56.0 1290 - - - - -",
		"sparse 0.900 0.750 1234 56.0 1290 12.5 40.0 30.0 0 98.0",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
