package run

import (
	"testing"

	"github.com/sparseserve/sparseserve/traces"
	"github.com/sparseserve/sparseserve/traces/reuse"
)

// TestLawPrefixHitsAreTheTraces: a server that has one request at a time and memory for all finds
// exactly what an independent replay of its requests does.
func TestLawPrefixHitsAreTheTraces(t *testing.T) {
	for _, sets := range [][]string{
		{"workload.trace=sessions", "workload.requests=80"},
		{"workload.trace=sessions", "workload.requests=80", "model=" + windowsAlone(t)},
		{"workload.trace=../../traces/testdata/mooncake.jsonl"},
		{"workload.trace=../../traces/testdata/sharegpt.json"},
	} {
		c := mustLoad(t, "", append([]string{"model=llama3.1-8b", "gpu=h100-80gb",
			"system.preset=vllm-0.15", "prefix_cache.mode=vllm", "workload.concurrency=1",
			"workload.arrivals=closed"}, sets...)...)
		p := c[0]
		sum, err := NewSimulator().Run(t.Context(), p, Sink{})
		if err != nil {
			t.Fatal(err)
		}
		stream, err := traces.Open(p.Workload, p.Seed, traces.Llama3)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		stack, want := reuse.NewStack(p.System.BlockTokens), 0
		for a, err := range stream.All() {
			if err != nil {
				t.Fatal(err)
			}
			want += stack.Serve(a.Content, a.Prompt, a.Output)
		}
		got := sum.PrefixCache
		if got == nil || got.HitTokens != int64(want) || got.PromptTokens != stack.Prompt() {
			t.Errorf("%v: %+v, want %d tokens of %d", sets, got, want, stack.Prompt())
		}
		if want == 0 {
			t.Errorf("%v: nothing is shared", sets)
		}
	}
}
