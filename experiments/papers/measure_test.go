package papers

import (
	"fmt"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// Waiting for loads takes 3 of 10 s of the steps' time, of which the host has 3.
func TestLoadShareIsOfAllTime(t *testing.T) {
	row := &record{json: true, cells: map[string]string{"phase_s.load_stall": "3",
		"phase_s.linears": "4", "phase_s.host": "3", "steps": "6"}}
	for metric, want := range map[string]float64{"load_share": 0.3, "load_s_per_step": 0.5} {
		if got, err := newResults("").metric(metric, row); err != nil || got != want {
			t.Errorf("%s is %g (%v), want %g", metric, got, err, want)
		}
	}
}

func runAt(system string, rate float64, seed int, ttft, tbt float64) string {
	return fmt.Sprintf(`{"system": %q, "rate": %g, "seed": %d, "ttft_s": {"mean": %g},
 "tbt_s": {"mean": %g}}`, system, rate, seed, ttft, tbt)
}

// The worst TBT is looked for over two models' rates, each up to a limit of its own, in means over
// seeds.
func TestLargestOverTwoExperiments(t *testing.T) {
	dir := t.TempDir()
	writeResult(t, dir, "fig10a", run.SummaryFile, "["+
		runAt("vllm", 0.1, 1, 2, 1)+","+runAt("sparseserve", 0.1, 1, 1, 3)+","+
		runAt("vllm", 0.15, 1, 6, 2)+","+runAt("vllm", 0.15, 2, 10, 4)+","+
		runAt("sparseserve", 0.15, 1, 2, 9)+","+runAt("sparseserve", 0.15, 2, 2, 6)+","+
		runAt("vllm", 0.3, 1, 14, 1)+","+runAt("sparseserve", 0.3, 1, 2, 9)+"]")
	writeResult(t, dir, "fig10b", run.SummaryFile, "["+
		runAt("vllm", 0.25, 1, 1, 1)+","+runAt("sparseserve", 0.25, 1, 1, 4)+","+
		runAt("vllm", 0.3, 1, 1, 1)+","+runAt("sparseserve", 0.3, 1, 1, 8)+"]")
	claims, err := Claims("ss-fig12-tbt")
	if err != nil {
		t.Fatal(err)
	}
	m := claims[0].measured(0)
	if got, err := newResults(dir).measure(m); err != nil || got != 4 {
		t.Errorf("the worst TBT is %g, %v; want 4, at 0.25/s", got, err)
	}
	m.From, m.Until = m.From[:1], m.Until[:1]
	if got, err := newResults(dir).measure(m); err != nil || got != 3 {
		t.Errorf("the worst TBT of the first is %g, %v; want 3, at 0.1/s", got, err)
	}
}
