package validate

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// modelled makes live runs on a modelled card.
type modelled struct{ *run.Simulator }

func (modelled) Device() (string, error) { return "a model", nil }
func (modelled) Options() string         { return "" }

func (m modelled) Shadowed(ctx context.Context, p config.Point, sink run.Sink) (sum metrics.Summary,
	steps []live.RecordedStep, err error) {
	var shadow live.CallRecorder
	sum, err = m.RunOn(ctx, p, sink, func(d sim.Device) sim.Device {
		shadow.Real = d
		return &shadow
	})
	return sum, shadow.Steps, err
}

// A card that takes the time that the model says is predicted without error:
// in every figure, step and phase.
func TestValidationOfTheModelItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.toml")
	if err := os.WriteFile(path, []byte(`gpu = "h200"
[workload]
rate = 2.0
requests = 6
output_scale = 0.3
[system]
engine = "vllm-0.5"
kv_gib = 8.0

[prefill]
max_prompt_tokens = 4096
[[axis]]
grid.system.preset = ["vllm", "vllm-so", "sparseserve", "sparseserve-psa"]
`), 0o644); err != nil {
		t.Fatal(err)
	}
	sweep, err := config.LoadSweep(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := run.NewSimulator()
	v := Validation{Dir: t.TempDir(), Sweep: sweep, Live: modelled{s}, Simulate: s.Run, Program: "a",
		LiveProgram: "b"}
	report, _, err := v.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	loaded, phases := 0, 0
	for _, c := range report.Comparisons() {
		if c.Error == nil || *c.Error != 0 {
			t.Errorf("%s: %s: %v live, %v simulated", c.Run, c.Metric, c.Live, c.Simulated)
		}
		if c.Metric == "blocks_loaded_per_step" && c.Live > 0 {
			loaded++
		}
		if strings.HasPrefix(c.Metric, "phase_") {
			phases++
		}
	}
	if loaded == 0 || phases < 20 {
		t.Errorf("%d runs load blocks, %d phases are compared", loaded, phases)
	}
	for i := range report.Runs {
		if report.Runs[i].Worst() != 0 || len(report.Runs[i].Misses()) > 0 {
			t.Errorf("%s misses %v", report.Runs[i].Run, report.Runs[i].Misses())
		}
	}
}

func TestCompareSteps(t *testing.T) {
	whole := func(live, model float64) step {
		l, m := des.FromSeconds(live), des.FromSeconds(model)
		return step{live: &metrics.Timing{Elapsed: l, Phases: metrics.Phases{Unsplit: l}},
			model: &metrics.Timing{Elapsed: m}}
	}
	split := whole(0.1, 0.11)
	split.mixed, split.live.Phases = true, metrics.Phases{Linears: des.FromSeconds(0.04)}
	steps := []step{split, whole(0.01, 0.009), whole(0.01, 0.013), whole(0.02, 0.02)}
	got := map[string][3]float64{}
	for _, c := range compareSteps("r", steps) {
		e := -1.0
		if c.Error != nil {
			e = *c.Error
		}
		got[c.Metric] = [3]float64{c.Live, c.Simulated, e}
	}
	for metric, want := range map[string][3]float64{
		"step_decode_mean_s":        {0.04 / 3, 0.042 / 3, 0.05},
		"step_decode_ratio":         {1, (0.9 + 1.3 + 1) / 3, 0.2 / 3},
		"step_decode_abs_error_p50": {0, 0.1, 0.1},
		"step_decode_abs_error_p95": {0, 0.28, 0.28}, // 0, 0.1, 0.3: rank 1.9
		"step_mixed_mean_s":         {0.1, 0.11, 0.1},
		"phase_mixed_linears_s":     {0.04, 0, -1},
	} {
		for i, w := range want {
			if d := got[metric][i] - w; d > 1e-12 || d < -1e-12 {
				t.Errorf("%s: %v, want %v", metric, got[metric], want)
				break
			}
		}
	}
	if _, ok := got["phase_decode_linears_s"]; ok {
		t.Error("phases of steps that were not split")
	}
}

func TestGoalsAndOrder(t *testing.T) {
	run := func(system string, live, simulated float64) ValidatedRun {
		r := ValidatedRun{Run: system, System: system, Rate: 1}
		r.Live.TTFT.Mean, r.Simulated.TTFT.Mean = live, simulated
		r.Live.ThroughputTokS, r.Simulated.ThroughputTokS = 100, 100
		r.Comparisons = compareSummaries(r.Run, &r.Live, &r.Simulated)
		return r
	}
	a, b, c := run("a", 1, 1.02), run("b", 1.005, 1.01), run("c", 2, 1.0)
	if got := a.Misses(); len(got) != 0 {
		t.Errorf("a misses %v", got)
	}
	if got := c.Misses(); len(got) != 1 || got[0] != "ttft_mean_s" {
		t.Errorf("c misses %v", got)
	}
	c.Saturated = true
	r := Report{Runs: []ValidatedRun{c, a, b}}
	var names string
	for _, run := range r.WorstFirst() {
		names += run.Run
	}
	if names != "abc" {
		t.Errorf("worst first: %s", names)
	}
	// a and b are a tie; both are better than c, but not simulated.
	swaps, pairs := Swaps(r.Runs)
	if len(swaps) != 2 || pairs != 2 || swaps[0].Second.Run != "c" {
		t.Errorf("%d of %d swapped: %+v", len(swaps), pairs, swaps)
	}
	for i := range r.Runs {
		r.Runs[i].Rate = float64(i)
	}
	if _, pairs := Swaps(r.Runs); pairs != 0 {
		t.Errorf("%d pairs at different loads", pairs)
	}
	none, some := compare("r", "m", 0, 0), compare("r", "m", 0, 1)
	if none.Error == nil || *none.Error != 0 || some.Error != nil {
		t.Errorf("of nothing: %v, %v", none.Error, some.Error)
	}
	if s := (metrics.Summary{Warnings: []warn.Warning{{Kind: warn.UnstableQueue}}}); !saturated(&s,
		nil,
		&config.SLO{DelayS: 2}) {
		t.Error("an unstable queue is below saturation")
	}
	if s := (metrics.Summary{QueueDelay: metrics.Stats{Mean: 1}}); saturated(&s, nil,
		&config.SLO{DelayS: 2}) || !saturated(&s, nil, &config.SLO{DelayS: 0.5}) {
		t.Error("the delay does not tell")
	}
	half := []servedRequest{{arrival: 0, last: 1}, {arrival: 0.5, last: 1.5}, {arrival: 2, last: 3},
		{arrival: 1, last: 4}}
	if s := (metrics.Summary{}); saturated(&s, half, &config.SLO{DelayS: 2}) ||
		!saturated(&s, half[1:], &config.SLO{DelayS: 2}) {
		t.Error("requests that are not finished as the last one arrives do not tell")
	}
}

// The committed experiments load, and fit the card that they name.
func TestValidateExperiments(t *testing.T) {
	sweep, err := config.LoadSweep(t.Context(), "../validate-longbench.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	points, err := sweep.Points(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	systems := map[string]int{}
	for i := range points {
		systems[points[i].System.Name]++
	}
	if len(points) != 35 || len(systems) != 9 || systems["vllm-psa"] != 2 {
		t.Errorf("%d runs of %v", len(points), systems)
	}
}
