package config

import (
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// Numbers with a unit are those in the unit of their key, in a file and in a flag.
func TestUnits(t *testing.T) {
	path := testkit.Write(t, "exp.toml", `
[workload]
prompt_lengths = "uniform(32k, 64Ki)"
output_lengths = "fixed(1k)"
stages = [["1min", "90/min"], [30, "3/s"]]
requests = "2k"
[slo]
ttft_s = "1.5s"
miss_share = "5%"
[system]
preset = "vllm-0.15"
utilisation = "85%"
[card]
hbm_bandwidth = "4TB/s"
`)
	runs, err := Load(path, []string{"slo.tbt_s=150ms", "system.kv_gib=20GB", "system.max_tokens=2Ki"})
	if err != nil {
		t.Fatal(err)
	}
	c := runs[0]
	s := &c.System
	for _, v := range []struct {
		key       string
		got, want float64
	}{
		{"slo.ttft_s", c.SLO.TTFTS, 1.5}, {"slo.tbt_s", c.SLO.TBTS, 0.15},
		{"slo.miss_share", c.SLO.MissShare, 0.05}, {"system.utilisation", s.Utilisation, 0.85},
		{"system.kv_gib", s.KVGiB, 20e9 / (1 << 30)}, {"system.max_tokens", float64(s.MaxTokens), 2048},
		{"card.hbm_bandwidth", c.Card["hbm_bandwidth"], 4000},
		{"workload.requests", float64(c.Workload.Requests), 2000},
	} {
		if v.got != v.want {
			t.Errorf("%s is %v, want %v", v.key, v.got, v.want)
		}
	}
	stages := slices.EqualFunc(c.Workload.Stages, [][]float64{{60, 1.5}, {30, 3}},
		slices.Equal[[]float64])
	if !stages {
		t.Errorf("stages are %v", c.Workload.Stages)
	}
	rates, err := Load("", []string{"workload.rate=[6/min, 0.2]"})
	if err != nil || !slices.Equal(ratesOf(rates), []float64{0.1, 0.2}) {
		t.Errorf("rates are %v (%v)", rates, err)
	}
}
