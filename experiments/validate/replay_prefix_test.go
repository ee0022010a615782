package validate

import (
	"context"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/records"
)

// A prompt takes 60 ms, or 30 from the cache, and a token 10 ms. A record of 31 ms is nearer to the
// cache (3 % off, and 94 %), one of 58 ms to full prefills; one of 42 ms is as far from both (43
// and 29 %), and 49 requests tell nothing.
func TestTheNearerSimulationIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		n            int
		ttft         float64
		layered, hit bool
		want         string
	}{
		"cached": {n: 60, ttft: 0.031, hit: true, want: "The log does not say whether prompts hit " +
			"the prefix cache. Hits fit better (TTFT -3 %, no hits TTFT +94 %), so all prompts hit; " +
			"--prefix-hit 0 simulates no hits."},
		"full": {n: 60, ttft: 0.058, want: "No hits fits better (TTFT +3 %, all hits " +
			"TTFT -48 %), so no hits is simulated; --prefix-hit SHARE overrides it."},
		"between": {n: 60, ttft: 0.042, want: "The figures do not tell either (no hits TTFT +43 %, "},
		"few":     {n: 49, ttft: 0.031, want: "49 requests are too few to tell"},
		"cannot":  {n: 60, ttft: 0.031, layered: true},
	} {
		var record []records.Request
		for i := range c.n {
			record = append(record, records.Request{At: des.Time(i) * des.Second, Prompt: 500, Output: 11,
				TTFT: c.ttft, E2E: c.ttft + 0.1})
		}
		r := replayOf(t, func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary,
			error) {
			ttft := 0.06 - 0.03*p.Workload.PrefixHit
			return fixed(ttft, ttft+0.1)(ctx, p, sink)
		}, record...)
		r.PrefixHit = PrefixAuto
		if c.layered {
			r.Config.System.Prefill.Split = "layer"
		}
		out, err := r.Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.layered {
			if out.Prefix != nil {
				t.Errorf("%s: %s", name, out.Prefix)
			}
			continue
		}
		hit := out.Config.Workload.PrefixHit == 1 && out.Requests[0].Simulated.TTFT == 0.03
		if hit != c.hit || out.Prefix.Hit() != c.hit || !strings.Contains(out.Prefix.String(), c.want) {
			t.Errorf("%s: hit is %v: %s", name, hit, out.Prefix)
		}
	}
}

// If a record names its prompts, the simulated prefix cache decides which tokens hit, and compare
// estimates nothing.
func TestIdentifiedPromptsHitTheCache(t *testing.T) {
	cfg, err := config.LoadServer("", []string{"model=llama2-7b", "gpu=h100-80gb"}, true, "")
	if err != nil {
		t.Fatal(err)
	}
	r := replayOf(t, run.NewSimulator().Run)
	r.Config, r.PrefixHit = cfg, PrefixAuto
	for i := range 20 {
		r.Record.Requests = append(r.Record.Requests, records.Request{At: des.Time(i) * des.Second,
			Prompt: 320, Output: 4, TTFT: 0.1, E2E: 0.2,
			Content: &prefix.Content{Prompt: []prefix.Piece{{ID: uint64(i%2) + 1, Tokens: 320}}}})
	}
	report, err := r.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Of 20 prompts the first two miss, and of the others all but the last block of 16 tokens hits.
	p := report.Summary.PrefixCache
	if report.Prefix != nil || p == nil || p.HitTokens != 18*304 {
		t.Errorf("estimate %+v, cache %+v", report.Prefix, p)
	}
}
