package papers

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// Waiting for loads takes 3 of 10 s of the steps' time, of which the host has 3.
func TestLoadShareIsOfAllTime(t *testing.T) {
	r := &sweptRun{Summary: sim.Summary{PhaseS: map[string]float64{"load_stall": 3, "linears": 4,
		"host": 3}, Steps: 6}}
	if got := loadShare(r); got != 0.3 {
		t.Errorf("the share is %g, want 0.3", got)
	}
	if got := loadTimePerStep(r); got != 0.5 {
		t.Errorf("a step waits %g s, want 0.5", got)
	}
}

// swept writes the runs of an experiment: a system, its rate and its mean TTFT each.
func swept(t *testing.T, dir, name, runs string) {
	t.Helper()
	path := filepath.Join(dir, name, "summary.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("["+runs+"]"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func runAt(system string, rate float64, seed int, ttft, tbt float64) string {
	return fmt.Sprintf(`{"system": %q, "rate": %g, "seed": %d, "ttft_s": {"mean": %g},
 "tbt_s": {"mean": %g}}`, system, rate, seed, ttft, tbt)
}

// The largest ratio is looked for over all rates up to the cap, of means over seeds.
func TestLargestRatioOverTheWholeCurve(t *testing.T) {
	dir := t.TempDir()
	a, b := system("vllm"), system("sparseserve")
	swept(t, dir, "fig10a",
		runAt("vllm", 0.1, 1, 2, 1)+","+runAt("sparseserve", 0.1, 1, 1, 3)+","+
			runAt("vllm", 0.2, 1, 6, 1)+","+runAt("vllm", 0.2, 2, 10, 1)+","+
			runAt("sparseserve", 0.2, 1, 2, 4)+","+runAt("sparseserve", 0.2, 2, 2, 4)+","+
			runAt("vllm", 0.3, 1, 14, 1)+","+runAt("sparseserve", 0.3, 1, 2, 9))
	r := newResults(dir)
	for _, c := range []struct{ limit, want float64 }{{math.Inf(1), 7}, {0.2, 4}, {0.15, 2}} {
		if got, err := r.largestRatio("fig10a", a, b, meanTTFT, c.limit); err != nil || got != c.want {
			t.Errorf("up to %g/s: %g, %v; want %g", c.limit, got, err, c.want)
		}
	}
	// TBT counts up to 0.15 and 0.25 requests/s.
	swept(t, dir, "fig10b",
		runAt("vllm", 0.25, 1, 1, 1)+","+runAt("sparseserve", 0.25, 1, 1, 2)+","+
			runAt("vllm", 0.3, 1, 1, 1)+","+runAt("sparseserve", 0.3, 1, 1, 8))
	if got, err := worstTBT(r); err != nil || got != 3 {
		t.Errorf("the worst TBT is %g, %v; want 3, at 0.1/s", got, err)
	}
}
