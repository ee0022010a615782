package run

import (
	"bytes"
	"encoding/csv"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// rowsOf reads a CSV, a map of columns a row; what is no number is NaN.
func rowsOf(t *testing.T, text []byte) []map[string]float64 {
	t.Helper()
	all, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]float64
	for _, cells := range all[1:] {
		row := map[string]float64{}
		for i, c := range cells {
			v, err := strconv.ParseFloat(c, 64)
			if err != nil {
				v = math.NaN()
			}
			row[all[0][i]] = v
		}
		rows = append(rows, row)
	}
	return rows
}

// A summary of a part of a run is a recount of the rows of requests.csv and steps.csv that belong
// to it, the bytes over the link fit the time that it was busy (law 6), HBM holds what is in use
// (law 2).
func TestFiguresAreARecount(t *testing.T) {
	sets := []string{"system.preset=sparseserve", "workload.rate=0.25", "workload.requests=60"}
	if slow {
		sets[2] = "workload.requests=12"
	}
	for _, cut := range [][]string{
		nil,
		{"metrics.warmup=share", "metrics.warmup_share=0.2", "metrics.drain=share",
			"metrics.drain_share=0.1"},
		{"metrics.warmup=mser", "metrics.drain=mser"},
	} {
		p := mustLoad(t, "", slices.Concat(sets, cut)...)[0]
		var requests, steps bytes.Buffer
		sum, err := NewSimulator().Run(t.Context(), p, Sink{Requests: &requests, Steps: &steps})
		if err != nil {
			t.Fatal(err)
		}
		w := sum.Window
		if w == nil {
			if cut != nil {
				t.Fatalf("%v: no window", cut)
			}
			w = &metrics.Window{ToS: math.Inf(1)}
		}
		var ttft, e2e, n, prompts, tokens, kv, gpu, h2d, loaded, last float64
		for _, r := range rowsOf(t, requests.Bytes()) {
			last = max(last, r["last_token_s"])
			if r["arrival_s"] >= w.FromS && r["arrival_s"] < w.ToS {
				n++
				ttft += r["first_token_s"] - r["arrival_s"]
				e2e += r["last_token_s"] - r["arrival_s"]
			}
			if r["last_token_s"] > w.FromS && r["last_token_s"] <= w.ToS {
				prompts += r["prompt_tokens"]
			}
		}
		for _, s := range rowsOf(t, steps.Bytes()) {
			end := s["start_s"] + s["elapsed_s"]
			inside := max(0, min(end, w.ToS)-max(s["start_s"], w.FromS))
			kv += s["hbm_kv_bytes"] * inside
			gpu += s["gpu_busy_s"] * inside / s["elapsed_s"]
			h2d += s["h2d_busy_s"] * inside / s["elapsed_s"]
			if end > w.FromS && end <= w.ToS+1e-9 {
				tokens += s["tokens"]
				loaded += s["h2d_bytes"]
			}
		}
		gpuOf, err := p.Machine()
		if err != nil {
			t.Fatal(err)
		}
		model, err := llm.Load(p.Model)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := gpuOf.KVBudget(&model, p.System.Utilisation, p.System.MaxTokens,
			p.System.MaxRequests)
		if err != nil {
			t.Fatal(err)
		}
		figures := map[string][2]float64{
			"requests": {float64(sum.Requests), n}, "TTFT": {sum.TTFT.Mean, ttft / n},
			"E2E":    {sum.E2E.Mean, e2e / n},
			"input":  {sum.PromptTokS, prompts / sum.SimulatedS},
			"output": {sum.ThroughputTokS, tokens / sum.SimulatedS},
			"GPU":    {sum.GPUUse.Mean, gpu / sum.SimulatedS},
			"H2D":    {sum.H2DUse.Mean, h2d / sum.SimulatedS},
			"HBM": {sum.HBMUse.Mean, (float64(plan.Usable-plan.KV) + kv/sum.SimulatedS) /
				float64(plan.Size)},
			"bytes": {float64(sum.H2DBytes), loaded},
		}
		for _, name := range slices.Sorted(maps.Keys(figures)) {
			if v := figures[name]; math.Abs(v[0]-v[1]) > 1e-6*math.Abs(v[1]) {
				t.Errorf("%v: %s is %v, counted %v", cut, name, v[0], v[1])
			}
		}
		if most := gpuOf.Link.H2D.SI() * h2d; cut == nil && loaded > most*(1+1e-9) {
			t.Errorf("law 6: %g bytes loaded, the link was busy for %g", loaded, most)
		}
		for name, u := range map[string]*metrics.Use{"HBM": sum.HBMUse, "DRAM": sum.DRAMUse,
			"GPU": sum.GPUUse, "H2D": sum.H2DUse, "D2H": sum.D2HUse} {
			if u.Mean <= 0 || u.Mean > u.Peak || u.Peak > 1 {
				t.Errorf("%v: use of %s %+v", cut, name, *u)
			}
		}
	}
}
