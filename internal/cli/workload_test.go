package cli

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim"
)

// synthetic are settings of a small server and its requests, none of which is from a file.
var synthetic = []string{
	"--set", "model=llama3.1-8b", "--set", "gpu=h100-80gb", "--set",
	"system.preset=[vllm-0.15,sparseserve]",
	"--set", "workload.prompt_lengths=lognormal(2000, 0.5, 9000)", "--set",
	"workload.output_lengths=uniform(20, 60)",
}

// Closed loops run from the command line as their clients do, and Little's law holds of what is
// printed.
func TestSimulateClosedLoop(t *testing.T) {
	simulator := run.NewSimulator().Run
	args := append([]string{"simulate", "--set", "workload.concurrency=[2,8]", "--set",
		"workload.requests=200"}, synthetic...)
	status, out, errs := invoke(t, simulator, append(args, "--json")...)
	var sums []sim.Summary
	if err := json.Unmarshal([]byte(out), &sums); status != 0 || err != nil || len(sums) != 4 {
		t.Fatalf("status %d, %v, %d runs\n%s", status, err, len(sums), errs)
	}
	for i, want := range []int{2, 8, 2, 8} {
		s := &sums[i]
		if s.Concurrency != want || s.Rate != 0 || s.Completed != 200 {
			t.Errorf("%s: concurrency %d, rate %g, %d completed", s.Name, s.Concurrency, s.Rate, s.Completed)
		}
		// The last requests of the other clients miss, at most one time end to end each.
		inSystem := float64(s.Completed) / s.SimulatedS * s.E2E.Mean
		if slack := float64(want) * 2 * s.E2E.P99 / s.SimulatedS; math.Abs(
			inSystem-float64(want)) > slack {
			t.Errorf("%s: throughput x time end to end = %g, want %d within %g", s.Name, inSystem,
				want, slack)
		}
	}
	if _, out, _ = runHere(t.Context(), simulator, args...); !strings.Contains(out, "c=2 ") ||
		!strings.Contains(out, "concurrency") && !strings.Contains(out, "closed loop") {
		t.Errorf("the table does not show the clients:\n%s", out)
	}
}

// TestClosedLoopTable is what people read of closed loops.
func TestClosedLoopTable(t *testing.T) {
	_, out, _ := invoke(t, pretend,
		append([]string{"simulate", "--set", "workload.concurrency=[2,16]", "--set",
			"workload.think_s=1.5"}, synthetic...)...)
	testkit.Golden(t, "simulate-closed.txt", out)
	_, out, _ = invoke(t, pretend,
		append([]string{"simulate", "--set", "workload.stages=[[600, 0.05], [600, 0.15]]", "--set",
			"workload.requests=100"}, synthetic...)...)
	testkit.Golden(t, "simulate-stages.txt", out)
}

// A search over rates has none to look for in a closed loop, or in stages.
func TestPlanRefusesWorkloadsWithoutARate(t *testing.T) {
	for set, want := range map[string]string{
		"workload.concurrency=4": "compare clients with simulate --set " +
			"workload.concurrency=[1,2,4,8]",
		"workload.stages=[[600, 1]]": "leave stages out",
	} {
		status, out, errs := invoke(t, pretend, append([]string{"plan", "--set", set}, synthetic...)...)
		if status != 1 || out != "" || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: status %d, %s%s", set, status, out, errs)
		}
	}
}
