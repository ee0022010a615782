package run

import (
	"bytes"
	"slices"
	"strings"
	"testing"
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
			"workload.requests=60", "workload.think_s=2", "workload.turns=fixed(4)",
			"workload.prompt_lengths=fixed(100)", "workload.output_lengths=uniform(1, 40)",
			"system.max_prompt_tokens=1250", "system.over_length=reject")...)
		var tables [2]bytes.Buffer
		for i := range tables {
			sum, err := NewSimulator().Run(t.Context(), c.Points()[0], Sink{Requests: &tables[i]})
			if err != nil {
				t.Fatal(err)
			}
			if sum.Requests != 60 || sum.Rejected == 0 || sum.Completed+sum.Rejected != 60 {
				t.Errorf("%v: %d requests, %d completed, %d rejected", sets, sum.Requests, sum.Completed,
					sum.Rejected)
			}
			for _, want := range []string{"ended early: a turn was rejected", "had turns left beyond"} {
				if !slices.ContainsFunc(sum.Warnings,
					func(w string) bool { return strings.Contains(w, want) }) {
					t.Errorf("%v: no warning %q in %q", sets, want, sum.Warnings)
				}
			}
		}
		if tables[0].String() != tables[1].String() {
			t.Errorf("%v: two runs differ", sets)
		}
	}
}
