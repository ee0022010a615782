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
	const off, index = "system.prefix_cache is off", "sparse prefill spends"
	for _, tc := range []struct {
		sets  []string
		warns string
	}{
		{[]string{"workload.trace=sessions", "system.prefix_cache=off"}, off},
		{[]string{"workload.trace=sessions", "system.prefix_cache=vllm"}, ""},
		{nil, ""}, // LongBench's lengths
		{[]string{"system.prefix_cache=vllm", "system.base=vllm-v1"}, ""},
		{[]string{"system.prefill_attention=minference"}, index},
		{[]string{"system.prefill_attention=minference", "system.chunk_tokens=32768",
			"system.max_tokens=32768"}, ""},
	} {
		sweep, err := config.LoadSweep("default", append([]string{"workload.requests=4",
			"workload.rate=1", "seeds=[1]", "system.preset=vllm"}, tc.sets...), nil)
		if err != nil {
			t.Fatal(err)
		}
		points, err := sweep.Points()
		if err != nil {
			t.Fatal(err)
		}
		sum, err := NewSimulator().Run(context.Background(), points[0].Point, Sink{})
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
