package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// How much of a session run's figures is chance: the same sessions whose mean think time of 2 s
// is 1 to 9 ms longer, so that a turn meets another step. The table is by how much of its mean each
// figure differs, from least to most: with -update it becomes a block of docs/evidence.md.
func TestEvidencePageOfChance(t *testing.T) {
	c, err := config.Load("../validate-prefix.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	figures := []string{"TTFT mean", "TTFT P99", "TBT mean", "TBT P99", "tok/s"}
	most := make([]float64, len(figures))
	shifts := 10
	if testing.Short() {
		shifts = 3
	}
	for _, p := range c {
		seen, think := make([][]float64, len(figures)), p.Workload.ThinkS
		for k := range shifts {
			p.Workload.ThinkS = think + 1e-3*float64(k)
			s, err := NewSimulator().Run(t.Context(), p, Sink{})
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range []float64{s.TTFT.Mean, s.TTFT.P99, s.TBT.Mean, s.TBT.P99,
				s.ThroughputTokS} {
				seen[i] = append(seen[i], x)
			}
		}
		apart := make([]float64, len(figures))
		for i, all := range seen {
			apart[i] = (slices.Max(all) - slices.Min(all)) / stat.Mean(all, nil)
			most[i] = max(most[i], apart[i])
		}
		if apart[0] == 0 || apart[2] > 0.01 || apart[4] > 0.01 {
			t.Errorf("%s: mean TTFT differs by %.2g of it, want some; mean TBT by %.2g and throughput by "+
				"%.2g, want 0.01 at most", p.Name, apart[0], apart[2], apart[4])
		}
	}
	if !testing.Short() {
		text := fmt.Sprintf("%d runs: ", len(c))
		for i, x := range most {
			text += fmt.Sprintf("%s %.1f %%, ", figures[i], 100*x)
		}
		text = strings.TrimSuffix(text, ", ") + ".\n"
		testkit.Block(t, "../../docs/evidence.md", "chance", text)
	}
}
