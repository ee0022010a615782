package run

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// ownTrace is three requests, one beyond every limit of the default experiment.
const ownTrace = "arrived_s,prompt_tokens,output_tokens,set\n0,100000,50,a\n1.5,2000,10,\"b, " +
	"c\"\n3,30,1,a\n"

// Requests are recorded as they came and as they were served, and what was cut or
// refused is warned of.
func TestOwnTraceIsServedAsItIs(t *testing.T) {
	testkit.Write(t, "own.csv", ownTrace)
	run := func(sets ...string) (rows string, warnings []string) {
		c := mustLoad(t, "", append([]string{"model=llama3-8b-1m", "gpu=h200", "workload.trace=own.csv"},
			sets...)...)
		var requests bytes.Buffer
		sum, err := NewSimulator().Run(t.Context(), c[0], Sink{Requests: &requests})
		if err != nil {
			t.Fatal(err)
		}
		return requests.String(), warn.Texts(sum.Warnings)
	}
	has := func(what, text, part string) {
		t.Helper()
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q lacks %q", what, text, part)
		}
	}
	rows, warnings := run("system.preset=sparseserve")
	has("header", rows, "id,set,trace_prompt_tokens,prompt_tokens,output_tokens,arrival_s,")
	has("whole", rows, "\n1,a,100000,100000,50,0.000000000,")
	has("a set with a comma", rows, "\n2,\"b, c\",2000,2000,10,1.500000000,")
	if strings.Contains(strings.Join(warnings, "\n"), "truncated") ||
		strings.Contains(strings.Join(warnings, "\n"), "left out") {
		t.Errorf("warnings %q of a trace that is served whole", warnings)
	}
	rows, warnings = run("system.preset=sparseserve", "prefill.max_prompt_tokens=32768",
		"prefill.over_length=truncate", "workload.requests=2")
	has("truncated", rows, "\n1,a,100000,32768,50,")
	has("truncated", strings.Join(warnings, "\n"), "1 of 2 prompts truncated to 32768 tokens "+
		"(longest 100000)")
	has("beyond", strings.Join(warnings, "\n"), "1 row left out beyond workload.requests = 2: own.csv")
	rows, warnings = run("system.preset=vllm", "system.kv_gib=5")
	has("rejected", rows, "\n1,a,100000,100000,50,0.000000000,,,,,\"KV of 100050 tokens")
	has("rejected", strings.Join(warnings, "\n"), "1 of 3 requests rejected: KV of 100050 tokens "+
		"exceeds HBM")
}
