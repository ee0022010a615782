package run

import (
	"context"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// Prompts that have something in common and no cache are warned of, and indices of sparse prefill
// that cost more than its attention; nothing else.
func TestUselessSettingsAreWarnedOf(t *testing.T) {
	const off, index = "prefix_cache.mode is off", "sparse prefill spends"
	for _, tc := range []struct {
		sets  []string
		warns string
	}{
		{[]string{"workload.trace=sessions", "prefix_cache.mode=off"}, off},
		{[]string{"workload.trace=sessions", "prefix_cache.mode=vllm"}, ""},
		{nil, ""}, // LongBench's lengths
		{[]string{"prefix_cache.mode=vllm", "system.scheduler=vllm-v1"}, ""},
		{[]string{"prefill.attention=minference"}, index},
		{[]string{"prefill.attention=minference", "prefill.chunk_tokens=32768",
			"system.max_tokens=32768"}, ""},
	} {
		sweep, err := config.LoadSweep(t.Context(), "default", append([]string{"workload.requests=4",
			"workload.rate=1", "seed=[1]", "system.preset=vllm"}, tc.sets...))
		if err != nil {
			t.Fatal(err)
		}
		points, err := sweep.Points(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sum, err := NewSimulator().Run(context.Background(), points[0], Sink{})
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(warn.Texts(sum.Warnings), "\n")
		for _, text := range []string{off, index} {
			if strings.Contains(all, text) != (text == tc.warns) {
				t.Errorf("%v: %q, want %q", tc.sets, sum.Warnings, tc.warns)
			}
		}
	}
}
