package score

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim/dsa"
)

// tokenCycle is the selection of an indexer: k of n candidates per step.
func tokenCycle(p Params, family, n, k int) *dsa.Cycle {
	s := New(p, 1)
	sheet := &dsa.Sheet{Setting: dsa.Setting{Digest: dsa.Indexed, Window: 1}, Steps: s.Steps()}
	s.Fill(family, n, sheet)
	v := &dsa.View{}
	return dsa.Record(n, s.Steps(), dsa.TopK{K: k}, func(t int) *dsa.View {
		sheet.View(t, 1, v)
		return v
	})
}

// missShare is the mean miss ratio of a buffer of the given capacity, in candidates.
func missShare(c *dsa.Cycle, slots int) float64 {
	r, misses, picks := dsa.NewReuse(c, slots, c.Candidates), 0, 0
	for t := range c.Steps {
		misses, picks = misses+r.Misses(t, dsa.Settled), picks+len(c.At(t).Next)
	}
	return float64(misses) / float64(picks)
}

// stepOverlap is the mean share of picks that the step before picked too.
func stepOverlap(c *dsa.Cycle) float64 {
	added, picks := 0, 0
	for t := range c.Steps {
		added, picks = added+len(c.At(t).Added), picks+len(c.At(t).Next)
	}
	return 1 - float64(added)/float64(picks)
}

// Overlap of the top 2,048 of 32k tokens with the step before (Default).
func TestTokensFitPublishedOverlap(t *testing.T) {
	sum := 0.0
	const families, grain = 8, 16
	for family := range families {
		sum += stepOverlap(tokenCycle(Default, family, 32768/grain, 2048/grain))
	}
	if got := sum / families; math.Abs(got-0.95) > 0.005 {
		t.Errorf("selections overlap by %.4f, published are 0.95 and more", got)
	}
}

// A candidate that stands for several tokens is a sample: overlap and miss ratio equal those for
// single tokens.
func TestGrainOfTokensIsASample(t *testing.T) {
	p := Default
	p.TokenMotion = 0.5 // more misses to compare
	const n, k = 8192, 512
	single := tokenCycle(p, 0, n, k)
	for _, grain := range []int{8, 16} {
		const families = 12
		overlap, misses := 0.0, make([]float64, 3)
		capacities := []float64{1.25, 2, 3}
		for family := range families {
			c := tokenCycle(p, family, n/grain, k/grain)
			overlap += stepOverlap(c) / families
			for i, f := range capacities {
				misses[i] += missShare(c, int(f*float64(k/grain))) / families
			}
		}
		if one := stepOverlap(single); math.Abs(overlap-one) > 0.01 {
			t.Errorf("grain %d: overlap %.4f, of single tokens %.4f", grain, overlap, one)
		}
		for i, f := range capacities {
			if one := missShare(single, int(f*k)); math.Abs(misses[i]-one) > 0.1*one+0.002 {
				t.Errorf("grain %d: %.4f missed with %g selections, of single tokens %.4f", grain, misses[i],
					f, one)
			}
		}
	}
}

// A single candidate's criticality equals its entry in a sheet of all.
func TestTokensOneByOne(t *testing.T) {
	s := New(Default, 1)
	sheet := &dsa.Sheet{Setting: dsa.Setting{Digest: dsa.Indexed, Window: 1}, Steps: s.Steps()}
	const n = 70
	s.Fill(3, n, sheet)
	one := s.Critical(sheet)
	for _, at := range [][2]int{{0, 0}, {5, 17}, {n - 1, 511}} {
		if got, want := one(3, n, at[0], at[1]), sheet.Critical[at[1]*n+at[0]]; got != want {
			t.Errorf("token %d at step %d: %g, the sheet has %g", at[0], at[1], got, want)
		}
	}
}
