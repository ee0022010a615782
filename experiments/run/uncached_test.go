package run

import (
	"context"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// A trace whose prompts have something in common is warned of where no cache finds it, and there
// alone.
func TestUncachedPrefixesAreWarnedOf(t *testing.T) {
	for _, tc := range []struct {
		sets  []string
		warns bool
	}{
		{[]string{"workload.trace=sessions"}, true},
		{[]string{"workload.trace=sessions", "system.prefix_cache=vllm"}, false},
		{nil, false}, // LongBench's lengths
	} {
		sweep, err := config.LoadSweep("default", append([]string{"workload.requests=4",
			"workload.rate=1", "seeds=[1]", "system.preset=vllm"}, tc.sets...))
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
		if got := strings.Contains(strings.Join(sum.Warnings, "\n"), "system.prefix_cache is off"); got !=
			tc.warns {
			t.Errorf("%v: %q", tc.sets, sum.Warnings)
		}
	}
}
