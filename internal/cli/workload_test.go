package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim/metrics"
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
	var sums []metrics.Summary
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
		status, out, errs := invoke(t, pretend, append([]string{"goodput", "--set", set},
			synthetic...)...)
		if status != 1 || out != "" || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: status %d, %s%s", set, status, out, errs)
		}
	}
}

// Every command that prints a table of systems says before it which load they had: how requests
// arrive, and whose lengths they have.
func TestTablesSayTheirLoad(t *testing.T) {
	t.Chdir(t.TempDir())
	rows := "arrived_s,prompt_tokens,output_tokens\n"
	record := "arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s\n"
	for i := range 30 {
		rows += fmt.Sprintf("%d,1000,20\n", i)
		record += fmt.Sprintf("%d,1000,20,0.1,0.5\n", i)
	}
	writeFile(t, "own.csv", rows)
	writeFile(t, "record.csv", record)
	loads := map[string][]string{
		"prompts fixed(900), outputs fixed(9), 30 requests, poisson arrivals": {
			"workload.trace=synthetic", "workload.prompt_lengths=fixed(900)",
			"workload.output_lengths=fixed(9)", "workload.requests=30"},
		"own.csv, all its requests, arrivals as recorded": {"workload.trace=own.csv"},
		"longbench, 30 requests, a closed loop of 3 client": {"workload.concurrency=3",
			"workload.requests=30"},
		"longbench, 30 requests, gamma arrivals": {"workload.arrivals=gamma", "workload.burstiness=2",
			"workload.rate=0.1", "workload.requests=30"},
		"sessions of fixed(3) turns, 30 requests, poisson arrivals of sessions": {
			"workload.trace=sessions", "workload.requests=30", "sessions.turns=fixed(3)",
			"workload.prompt_lengths=fixed(90)", "workload.output_lengths=fixed(9)", "workload.rate=0.1"},
	}
	system := []string{"model=llama3-8b", "gpu=h100-80gb", "system.preset=vllm", "seed=[1]"}
	n := 0
	for want, sets := range loads {
		searched := strings.Contains(want, "poisson arrivals") && !strings.Contains(want, "sessions")
		for _, command := range []string{"simulate",
			"whatif --vary hbm=0.9 --metric ttft_mean", "goodput",
			"plan default --set plan.prices=mid --set slo.ttft_s=9"} {
			if (command == "goodput" || strings.HasPrefix(command, "plan")) &&
				!searched { // which has no rate to look for
				continue
			}
			args := strings.Fields(command)
			for _, set := range append(system, sets...) {
				args = append(args, "--set", set)
			}
			if searched && command != "goodput" {
				args = append(args, "--set", "workload.rate=0.1")
			}
			n++
			status, out, errs := runHere(t.Context(), pretend, append(args, "--out", fmt.Sprint(n))...)
			words := want
			if strings.Contains(command, "prices") { // in the words of a question
				words = "poisson"
			}
			head, _, table := strings.Cut(out, "╭")
			if strings.HasPrefix(command, "whatif") { // of knobs without effect
				head, _, table = strings.Cut(out, "without effect")
			}
			if status != 0 || !table || !strings.Contains(head, words) {
				t.Errorf("%s of %s: status %d, %q, %s", command, want, status, head, errs)
			}
		}
	}
	status, out, errs := runHere(t.Context(), run.NewSimulator().Run, "compare", "record.csv", "--set",
		"model=llama3-8b", "--set", "gpu=h100-80gb")
	if !strings.HasPrefix(out, "record.csv (csv), 30 requests over 29.0 s") {
		t.Errorf("compare: status %d, %s%s", status, out, errs)
	}
}
