package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// gridOf is a sweep of n rates, n token limits and n seeds.
func gridOf(n int) string {
	var rates, tokens, seeds []string
	for i := range n {
		rates = append(rates, fmt.Sprint(float64(i+1)/100))
		tokens = append(tokens, fmt.Sprint(4096+i))
		seeds = append(seeds, fmt.Sprint(i+1))
	}
	return fmt.Sprintf("[system]\npreset = \"vllm\"\n[[axis]]\ngrid.workload.rate = "+
		"[%s]\ngrid.system.max_tokens = [%s]\n[[axis]]\ngrid.seed = [%s]\n",
		strings.Join(rates, ","), strings.Join(tokens, ","), strings.Join(seeds, ","))
}

// BenchmarkExpand expands a sweep of 1,000 points.
func BenchmarkExpand(b *testing.B) {
	b.Chdir(b.TempDir())
	path := testkit.Write(b, "grid.toml", gridOf(10))
	for b.Loop() {
		s, err := LoadSweep(b.Context(), path, nil)
		if err != nil {
			b.Fatal(err)
		}
		if points, err := s.Points(b.Context()); err != nil || len(points) != 1000 {
			b.Fatal(len(points), err)
		}
	}
}
