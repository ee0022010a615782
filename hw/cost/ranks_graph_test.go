package cost

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// Decode layers of two ranks were measured in CUDA graphs on two H200s
// (cuda/measured/ranks_graph.py): without all-reduces, their all-reduces alone, and together. With
// one-shot kernels, which engines use for small sizes, the layers together take no longer than the
// slower rank and the all-reduces, so the cost model needs no term for ranks that wait.
func TestCostModelPageOfRanks(t *testing.T) {
	text, err := os.ReadFile("../../cuda/measured/ranks-graph-h200.txt")
	if err != nil {
		t.Fatal(err)
	}
	lost := map[string][]float64{}
	var apart []float64
	for line := range strings.Lines(string(text)) {
		var name, kind string
		var ranks, requests int
		var layer, first, second, alone, whole float64 // us
		n, _ := fmt.Sscanf(line, "%s %d %d %s %f (%f %f) %f %f", &name, &ranks, &requests, &kind, &layer,
			&first, &second, &alone, &whole)
		if n < 9 {
			continue // a header
		}
		lost[kind] = append(lost[kind], whole-layer-alone)
		apart = append(apart, math.Max(first, second)/math.Min(first, second)-1)
	}
	table := "| all-reduce | layers | us lost a layer, median | range | slower over faster rank, " +
		"at most |\n|-|-:|-:|-:|-:|\n"
	for _, kind := range []string{"one-shot", "nccl"} {
		of := lost[kind]
		slices.Sort(of)
		table += fmt.Sprintf("| %s | %d | %+.1f | %+.1f to %+.1f | %+.1f %% |\n", kind, len(of),
			of[len(of)/2], of[0], of[len(of)-1], 100*slices.Max(apart))
	}
	generated(t, "../../docs/cost-model.md", "ranks", "CostModelPageOfRanks", table)
	if of := lost["one-shot"]; math.Abs(of[len(of)/2]) > 1 {
		t.Errorf("one-shot all-reduces lose %.1f us a layer in the median, want 1 at most", of[len(of)/2])
	}
}
