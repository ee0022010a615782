package run

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// Sessions run on a server and on a fleet, open and closed, to the requests asked for; the same
// configuration gives the same bytes.
func TestSessionsRun(t *testing.T) {
	for _, sets := range [][]string{
		{"workload.rate=2"},
		{"workload.concurrency=6"},
		{"workload.rate=2", "fleet.replicas=3", "fleet.router=session", "fleet.fail=[[8, 1, 5]]"},
		{"workload.concurrency=6", "fleet.replicas=3", "fleet.router=session"},
	} {
		c := mustLoad(t, "", append(sets, "system.preset=vllm", "workload.trace=sessions",
			"workload.requests=60", "workload.think_s=2", "sessions.turns=fixed(4)",
			"workload.prompt_lengths=fixed(100)", "workload.output_lengths=uniform(1, 40)",
			"prefill.max_prompt_tokens=1250", "prefill.over_length=reject")...)
		var tables [2]bytes.Buffer
		for i := range tables {
			sum, err := NewSimulator().Run(t.Context(), c[0], Sink{Requests: &tables[i]})
			if err != nil {
				t.Fatal(err)
			}
			if sum.Requests != 60 || sum.Rejected == 0 || sum.Completed+sum.Rejected != 60 {
				t.Errorf("%v: %d requests, %d completed, %d rejected", sets, sum.Requests, sum.Completed,
					sum.Rejected)
			}
			for _, want := range []string{"ended early: a turn was rejected", "had turns left beyond"} {
				if !slices.ContainsFunc(sum.Warnings,
					func(w warn.Warning) bool { return strings.Contains(w.Text, want) }) {
					t.Errorf("%v: no warning %q in %q", sets, want, sum.Warnings)
				}
			}
		}
		if tables[0].String() != tables[1].String() {
			t.Errorf("%v: two runs differ", sets)
		}
	}
}

// Whole sessions are served to their end, the same turns of each whatever the system, the rate and
// the number of servers.
func TestWholeSessionsRun(t *testing.T) {
	turns := map[string]int{}
	for _, sets := range [][]string{
		{"workload.rate=2", "system.preset=vllm"},
		{"workload.rate=0.2", "system.preset=sparseserve"},
		{"workload.concurrency=6", "system.preset=vllm"},
		{"workload.rate=2", "system.preset=vllm", "fleet.replicas=3", "fleet.router=session",
			"fleet.fail=[[8, 1, 5]]"},
	} {
		c := mustLoad(t, "", append(sets, "workload.trace=sessions", "sessions.count=12",
			"workload.think_s=2", "workload.prompt_lengths=fixed(100)",
			"workload.output_lengths=uniform(1, 40)")...)
		var table bytes.Buffer
		sum, err := NewSimulator().Run(t.Context(), c[0], Sink{Requests: &table})
		if err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(strings.TrimSpace(table.String()), "\n")
		column := func(row, name string) string {
			return strings.Split(row, ",")[slices.Index(strings.Split(rows[0], ","), name)]
		}
		if sum.Completed != len(rows)-1 || sum.Rejected > 0 {
			t.Errorf("%v: %d completed of %d rows, %d rejected", sets, sum.Completed, len(rows)-1,
				sum.Rejected)
		}
		for _, row := range rows[1:] {
			turns[column(row, "prompt_tokens")+" "+column(row, "output_tokens")]++
		}
	}
	for _, search := range []string{"../../examples/4-goodput.toml", "../../examples/9-plan.toml"} {
		_, err := config.LoadPlan(t.Context(), search, []string{"workload.trace=sessions",
			"sessions.count=3",
			"workload.think_s=1"})
		if err == nil || !strings.Contains(err.Error(), "set workload.requests in its place") {
			t.Errorf("a search %s over whole sessions: %v", search, err)
		}
	}
	if len(turns) < 24 {
		t.Fatalf("only %d turns", len(turns))
	}
	for turn, n := range turns {
		if n%4 != 0 {
			t.Errorf("a turn of %s tokens was served %d times in 4 runs", turn, n)
		}
	}
}
