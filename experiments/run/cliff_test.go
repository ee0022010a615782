package run

import (
	"context"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// A request by itself waits for steps alone: with steps 5 % longer its times are 5 % longer. With
// a factor of 1 every figure is the same, of all that devices do: loads, saves, tiers below HBM.
func TestStepTime(t *testing.T) {
	one := []string{"model=llama3-8b", "gpu=h100-80gb", "workload.trace=synthetic",
		"workload.prompt_lengths=fixed(8000)", "workload.output_lengths=fixed(20)",
		"workload.requests=1", "workload.rate=1", "system.engine=vllm-0.5"}
	few := []string{"workload.requests=12", "workload.rate=0.3", "system.engine=vllm-0.15"}
	tiers := []string{"workload.trace=sessions", "sessions.turns=fixed(4)", "workload.requests=30",
		"sessions.system_lengths=fixed(2000)", "workload.prompt_lengths=fixed(300)", "workload.rate=1",
		"workload.think_s=1", "prefix_cache.mode=vllm", "prefix_cache.dram_gib=20", "system.kv_gib=1"}
	for name, sets := range map[string][]string{
		"dense":       append(slices.Clone(one), "system.preset=vllm"),
		"sparseserve": append(slices.Clone(one), "system.preset=sparseserve"),
		"several":     append(few, "system.preset=sparseserve"),
		"leaps":       {"workload.requests=12", "workload.rate=0.3", "system.preset=vllm-0.15"},
		"tiers":       append(tiers, "system.preset=vllm-0.15"),
	} {
		p := mustLoad(t, "", sets...)[0]
		run := func(factor float64) metrics.Summary {
			sum, err := NewSimulator().Run(t.Context(), p, Sink{StepTime: factor})
			if err != nil {
				t.Fatal(err)
			}
			return sum
		}
		is, same, longer := run(0), run(1), run(1.05)
		if !reflect.DeepEqual(is, same) {
			t.Errorf("%s: a factor of 1 changes\n%+v\nto\n%+v", name, is, same)
		}
		alone := p.Workload.Requests == 1
		for what, v := range map[string][2]float64{"TTFT": {is.TTFT.Mean, longer.TTFT.Mean},
			"TBT": {is.TBT.Mean, longer.TBT.Mean}, "E2E": {is.E2E.Mean, longer.E2E.Mean}} {
			if ratio := v[1] / v[0]; alone && math.Abs(ratio-1.05) > 1e-5 || ratio < 1.01 {
				t.Errorf("%s: %s is %.6g times as long", name, what, ratio)
			}
		}
	}
}

// edge returns a run near the limit, whose TTFT is as the steps are long, and how often it is made.
func edge() (Runner, *int) {
	made := 0
	return func(_ context.Context, _ config.Point, sink Sink) (metrics.Summary, error) {
		made++
		longer := sink.StepTime > 1
		v := map[bool]float64{true: 3, false: 0.5}[longer]
		return metrics.Summary{TTFT: metrics.Stats{Mean: v, P90: 2 * v},
			TBT:    metrics.Stats{Mean: v / 100},
			SLOMet: new(!longer)}, nil
	}, &made
}

func TestCliff(t *testing.T) {
	p := config.Point{System: sim.Spec{MaxRequests: 256}}
	near := metrics.Summary{Completed: 300, Uses: metrics.Uses{BatchFull: 0.31}, SLOMet: new(true),
		TTFT: metrics.Stats{Mean: 1, P90: 1.25}, TBT: metrics.Stats{Mean: 0.02}}
	runner, made := edge()
	if err := Cliff(t.Context(), runner, &p, &near, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"near a limit: within 5 % of max_requests = 256 for 31 % of the time; step " +
		"times 5 % longer would make mean TTFT 3 s instead of 1, P90 TTFT 6 s instead of 1.25 and mean " +
		"TBT 30 ms instead of 20; 5 % shorter: 0.5 s, 1 s and 5 ms; the SLO is met, and with longer " +
		"steps missed"}
	if !slices.Equal(warn.Texts(near.Warnings), want) || *made != 2 || len(near.Paced) != 2 ||
		near.Paced[0].StepTime != 0.95 || near.Paced[1].TTFT.P90 != 6 {
		t.Errorf("%d runs: %q, %+v", *made, near.Warnings, near.Paced)
	}
	for name, s := range map[string]metrics.Summary{
		"far": {Completed: 300, Uses: metrics.Uses{BatchFull: 0.01, KVFull: 0.019}},
		"beyond": {Completed: 300, Uses: metrics.Uses{KVFull: 1},
			Warnings: []warn.Warning{{Kind: warn.UnstableQueue}}},
		"nothing":   {Uses: metrics.Uses{KVFull: 1}},
		"cut short": {Completed: 300, Uses: metrics.Uses{KVFull: 1}, Interrupted: "interrupted"},
	} {
		runner, made := edge()
		warnings := len(s.Warnings)
		if err := Cliff(t.Context(), runner, &p, &s, nil); err != nil || *made != 0 ||
			len(s.Warnings) != warnings {
			t.Errorf("%s: %d runs, %q, %v", name, *made, s.Warnings, err)
		}
	}
}

// A grid repeats the runs that are near a limit, reports the number of requests, and keeps the
// results with the run.
func TestGridMakesRunsAgain(t *testing.T) {
	c := mustLoad(t, "", "workload.requests=10", "workload.rate=[0.1,0.2]", "system.preset=vllm")
	folder, err := openRuns(t.TempDir(), "test", c, false)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	again, runs := 0, 0
	grid := Grid{Workers: 1, Again: func(n int) { again += n },
		Run: func(ctx context.Context, p config.Point, sink Sink) (metrics.Summary, error) {
			runs++
			sum, err := pretend(ctx, p, sink)
			if p.Workload.Rate == 0.2 {
				sum.KVFull = 0.5
			}
			return sum, err
		}}
	for range 2 { // the second time nothing is left to run
		results, err := folder.Store.Do(t.Context(), grid, c)
		if err != nil || len(results) != 2 {
			t.Fatal(results, err)
		}
		if again != 20 || runs != 4 || len(results[0].Summary.Paced) != 0 ||
			len(results[1].Summary.Paced) != 2 || len(results[1].Summary.Warnings) != 1 {
			t.Errorf("%d runs, %d requests again: %+v", runs, again, results)
		}
	}
}
