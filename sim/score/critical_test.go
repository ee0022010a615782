package score

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/dsa"
)

// A criticality asked for by itself is the one that Fill writes, to the bit.
func TestCriticalIsWhatFillWrites(t *testing.T) {
	s := New(Default, 1)
	rapid.Check(t, func(t *rapid.T) {
		sheet := dsa.Sheet{Steps: scoreSteps, Setting: dsa.Setting{
			Digest: rapid.SampledFrom([]dsa.Digest{dsa.CuboidMean, dsa.MinMax, dsa.Mean, dsa.Representative,
				dsa.Speculated}).Draw(t, "digest"),
			Sinks: rapid.IntRange(0, 2).Draw(t, "sinks"), Window: rapid.IntRange(1, 3).Draw(t, "window"),
			Queries: rapid.IntRange(1, 4).Draw(t, "queries"),
		}, Weighs: rapid.Bool().Draw(t, "weighs")}
		critical := s.Critical(&dsa.Sheet{Setting: sheet.Setting})
		for range 3 {
			family, n := rapid.IntRange(0, 5).Draw(t, "family"), rapid.IntRange(1, 100).Draw(t, "blocks")
			s.Fill(family, n, &sheet)
			for range 20 {
				b, at := rapid.IntRange(0, n-1).Draw(t, "block"), rapid.IntRange(0, s.Steps()-1).Draw(t, "step")
				if got, want := critical(family, n, b, at), sheet.Critical[at*n+b]; got != want {
					t.Fatalf("family %d, block %d of %d, step %d: %v, Fill writes %v", family, b, n, at, got, want)
				}
			}
		}
	})
}
