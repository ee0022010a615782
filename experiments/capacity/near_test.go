package capacity

import (
	"context"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// A choice that runs near a limit of its servers is warned of, from two runs that are kept: asked
// again, the plan makes none. One that is far from its limits has no such runs.
func TestChoiceNearItsLimit(t *testing.T) {
	for full, want := range map[float64]int64{0.3: 2, 0.01: 0} {
		var paced, all atomic.Int64
		runner := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
			all.Add(1)
			sum, err := thirds(ctx, p, sink)
			sum.BatchFull, sum.TTFT.Mean, sum.TTFT.P90 = full, 1, 2
			if sink.StepTime > 0 {
				paced.Add(1)
				sum.TTFT.Mean, sum.TTFT.P90 = 10*sink.StepTime, 20*sink.StepTime
			}
			return sum, err
		}
		dir := t.TempDir()
		first, _ := purchase(t, dir, asked, 2, runner)
		said := strings.Join(warn.Texts(first.Warnings), "\n")
		warned := strings.Contains(said, "P90 TTFT 21 s instead of 2")
		if n := paced.Load(); n != want || warned != (n > 0) {
			t.Errorf("near for %g of the time: %d runs with other step times, %s", full, n, said)
		}
		all.Store(0)
		again, _ := purchase(t, dir, asked, 2, runner)
		if n := all.Load(); n != 0 || !reflect.DeepEqual(again.Warnings, first.Warnings) {
			t.Errorf("again: %d runs, %q, before %q", n, again.Warnings, first.Warnings)
		}
	}
}
