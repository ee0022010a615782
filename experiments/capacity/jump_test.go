package capacity

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// A limit that is hardly used and missed by far with little more load is warned of; one that is
// neared by degrees is not.
func TestJumpsAreWarnedOf(t *testing.T) {
	for _, jumps := range []bool{true, false} {
		cliff := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
			sum, err := queues(ctx, p, sink)
			if full := sum.TTFT.P99 > 1; jumps && full {
				sum.TTFT.P99 = 3
			} else if jumps {
				sum.TTFT.P99 = 0.2
			}
			return sum, err
		}
		// One replica of the cheapest is just enough: 1.56 TB/s, 1,024 requests a batch.
		// By degrees it has to stay below the planned 0.85 s.
		rate := map[bool]string{true: "rate = 1.65", false: "rate = 1.4"}[jumps]
		text := strings.NewReplacer(`["a100-40gb", "a100-80gb", "h100-80gb", "h200"]`, `["a100-40gb"]`,
			"[plan]", "[plan]\nheadroom = 0").Replace(fmt.Sprintf(short, rate, "ttft_s = 1"))
		a, _ := purchase(t, t.TempDir(), text, 2, cliff)
		c := a.Choice
		if c == nil || c.Beyond == nil || c.Beyond.Name != "ttft" || c.Fails <= *c.Largest ||
			*c.Headroom > jumpWithin {
			t.Fatalf("choice %+v", c)
		}
		if c.Beyond.Of < 1 || jumps && math.Abs(c.Beyond.Of-3/0.85) > 1e-9 {
			t.Errorf("beyond it %+v", c.Beyond)
		}
		warned := strings.Contains(strings.Join(warn.Texts(a.Warnings), "\n"),
			"ttft jumps from 24 % of its planned limit to 353 % as the load grows from 1.65")
		if warned != jumps {
			t.Errorf("jumps: %v, warnings %q", jumps, a.Warnings)
		}
	}
}
