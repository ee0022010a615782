package run

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// columnOf is a column of the table of these summaries; nil where there is none of that name.
func columnOf(t *testing.T, name string, sums ...metrics.Summary) []string {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(tabulate(sums).Bytes())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, title := range rows[0] {
		if title == name {
			var cells []string
			for _, row := range rows[1:] {
				cells = append(cells, row[i])
			}
			return cells
		}
	}
	return nil
}

// Of a run that ended early it is not known whether it keeps the service level.
func TestTableOfInterruptedRuns(t *testing.T) {
	early := metrics.Summary{Interrupted: "interrupted"}
	if text, err := Marshal([]metrics.Summary{early}); err != nil ||
		bytes.Contains(text, []byte("slo_met")) {
		t.Errorf("%s, %v", text, err)
	}
	var before metrics.Summary // files of earlier versions have false
	if err := json.Unmarshal([]byte(`{"slo_met": false, "interrupted": "interrupted"}`),
		&before); err != nil {
		t.Fatal(err)
	}
	got := columnOf(t, "slo_met", metrics.Summary{SLOMet: new(true)}, early, before,
		metrics.Summary{SLOMet: new(false)})
	if want := []string{"true", "", "", "false"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The table has the share of prompts in the prefix cache where a run has one.
func TestTableOfPrefixHits(t *testing.T) {
	off, on := metrics.Summary{}, metrics.Summary{PrefixCache: &metrics.PrefixStats{HitShare: 0.625}}
	if got := columnOf(t, "prefix_hit_share", off, on); !slices.Equal(got, []string{"", "0.625"}) {
		t.Errorf("%q", got)
	}
	if got := columnOf(t, "prefix_hit_share", off); got != nil {
		t.Errorf("%q without a cache", got)
	}
}

// Each column has its own figure: no two of this run are equal.
func TestTableHasEachFigureInItsColumn(t *testing.T) {
	goodput, share := 11.0, 0.12
	stats := func(from float64) metrics.Stats {
		return metrics.Stats{Mean: from, P50: from + 1, P90: from + 2, P95: from + 3, P99: from + 4}
	}
	sum := metrics.Summary{Name: "run", System: "a", Model: "m", GPU: "g", Seed: 1, Rate: 2,
		Requests:  34,
		Completed: 24, Rejected: 8, Preempted: 7, SimulatedS: 90, Steps: 80,
		TTFT: stats(100), TBT: stats(200), TPOT: stats(300), E2E: stats(400), QueueDelay: stats(500),
		RequestThroughput: 13, RequestGoodput: &goodput, PromptTokS: 14, ThroughputTokS: 15,
		TotalTokS: 29, BatchMean: 16, BlocksLoadedPerStep: 17, HitRatio: 0.18, H2DBytes: 19,
		D2HBytes: 20, PhaseS: map[string]float64{"linears": 21, "host": 22}, GoodShare: &share,
		SLOMet: new(false), SLOMissed: []string{"tbt", "ttft"},
		Warnings: []warn.Warning{{Text: "w"}, {Text: "x"}},
		Uses: metrics.Uses{HBMUse: &metrics.Use{Mean: 0.5, Peak: 0.75},
			D2HUse: &metrics.Use{Mean: 0.25, Peak: 1}}}
	want := map[string]string{"name": "run", "system": "a", "model": "m", "gpu": "g", "seed": "1",
		"rate": "2", "requests": "34", "completed": "24", "rejected": "8", "served_share": "0.75",
		"preempted": "7", "simulated_s": "90", "steps": "80", "request_throughput": "13",
		"request_goodput": "11", "prompt_tok_s": "14", "throughput_tok_s": "15", "total_tok_s": "29",
		"batch_mean": "16", "blocks_loaded_per_step": "17", "hit_ratio": "0.18", "h2d_bytes": "19",
		"d2h_bytes": "20", "phase_linears_s": "21", "phase_host_s": "22", "good_share": "0.12",
		"slo_met": "false", "slo_missed": "tbt ttft", "warnings": "w; x", "hbm_use_mean": "0.5",
		"hbm_use_peak": "0.75", "d2h_use_mean": "0.25", "d2h_use_peak": "1", "gpu_use_mean": "",
		"ttft_mean_s": "100", "ttft_p50_s": "101", "ttft_p90_s": "102", "ttft_p95_s": "103",
		"ttft_p99_s": "104", "tbt_mean_s": "200", "tbt_p99_s": "204", "tpot_mean_s": "300",
		"tpot_p90_s": "302", "e2e_mean_s": "400", "e2e_p99_s": "404", "queue_delay_mean_s": "500",
		"queue_delay_p95_s": "503"}
	for column, value := range want {
		if got := columnOf(t, column, sum); len(got) != 1 || got[0] != value {
			t.Errorf("%s is %q, want %q", column, got, value)
		}
	}
}
