package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// How much of a session run's figures is chance: the same sessions whose mean think time of 2 s
// is 1 to 9 ms longer, so that their turns meet others of the steps that run. It prints by how much
// of its mean each figure differs, from least to most: a table of docs/validation.md
// (`go test ./experiments/run -run ChanceOfSessions -v`).
func TestChanceOfSessions(t *testing.T) {
	c, err := config.Load("../validate-prefix.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	figures := []string{"TTFT mean", "TTFT P99", "TBT mean", "TBT P99", "tok/s"}
	t.Logf("| run | %s |\n|-|-:|-:|-:|-:|-:|", strings.Join(figures, " | "))
	shifts, least := 10, 0.01
	if testing.Short() {
		shifts, least = 3, 0.0005
	}
	for _, p := range c.Points() {
		seen := make([][]float64, len(figures))
		think := p.Workload.ThinkS
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
		row, apart := "| "+p.Name, make([]float64, len(figures))
		for i, all := range seen {
			sum := 0.0
			for _, x := range all {
				sum += x
			}
			apart[i] = (slices.Max(all) - slices.Min(all)) * float64(len(all)) / sum
			row += fmt.Sprintf(" | %.1f %%", 100*apart[i])
		}
		t.Log(row + " |")
		if apart[0] < least || apart[2] > 0.01 || apart[4] > 0.01 {
			t.Errorf("%s: mean TTFT differs by %.2g of it, want %g and more; mean TBT by %.2g and "+
				"throughput by %.2g, want 0.01 at most", p.Name, apart[0], least, apart[2], apart[4])
		}
	}
}
