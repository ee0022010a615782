package dsa

import (
	"math"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// algorithm1 is PSA's Algorithm 1, line by line, with microbatches of m blocks.
// B' begins with the kept blocks, whose attention is not compared in line 13:
// they are no candidates. It returns the candidates attended to, in order.
func algorithm1(v *View, m int, epsilon float64) []uint16 {
	kept, n := len(v.Kept), len(v.Critical)
	asAcc := 0.0                // 3
	asMin := math.Inf(1)        // 4
	ranked := make([]uint16, n) // 6: by 5
	for b := range ranked {
		ranked[b] = uint16(b)
	}
	sort.SliceStable(ranked, func(i, j int) bool { return v.Critical[ranked[i]] > v.Critical[ranked[j]] })
	left := kept + n          // 7
	for b := range kept + n { // 8, 9
		var as float64 // 10
		if b < kept {
			as = math.Exp(float64(v.Skew * v.Kept[b]))
		} else {
			as = math.Exp(float64(v.Skew * v.Score[ranked[b-kept]]))
			asMin = min(as, asMin) // 13
		}
		asAcc += as // 12
		left--      // 14
		if (b+1)%m != 0 || b < kept {
			continue // a microbatch is one computation; the first has a candidate
		}
		asTotal := asAcc + asMin*float64(left) // 15
		if asAcc/asTotal > epsilon {           // 16, 17
			return ranked[:b+1-kept] // 18
		}
	}
	return ranked
}

// drawView draws what a policy sees, of few levels so that ties are many.
func drawView(t *rapid.T, n, kept int) *View {
	row := func(name string, n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(rapid.IntRange(-12, 12).Draw(t, name)) / 4
		}
		return out
	}
	return &View{Critical: row("critical", n), Score: row("score", n), Kept: row("kept", kept), Skew: float32(rapid.IntRange(1, 12).Draw(t, "skew")) / 4}
}

func TestPSAAgainstAlgorithm1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(1, 20).Draw(t, "m")
		v := drawView(t, rapid.IntRange(1, 120).Draw(t, "n"), rapid.IntRange(0, 6).Draw(t, "kept"))
		p := PSA{Epsilon: rapid.Float64Range(0.02, 0.999).Draw(t, "epsilon"), Microbatch: m, Ahead: rapid.IntRange(0, 2).Draw(t, "ahead")}
		want := algorithm1(v, m, p.Epsilon)
		got, used := p.Picker().Pick(v, nil)
		if !slices.Equal(got[:used], want) {
			t.Fatalf("attends to %v, Algorithm 1 to %v", got[:used], want)
		}
		if ahead := min(len(v.Critical), used+p.Ahead*m); len(got) != ahead {
			t.Fatalf("%d loaded with %d attended to, want %d", len(got), used, ahead)
		}
		if r := v.Recall(got[:used]); r > 1+1e-12 || r <= 0 {
			t.Fatalf("holds %g of the attention", r)
		}
	})
}

// A prefix is what PSA attends to at every threshold, ends where the share passes
// it, and holds what Recall says.
func TestPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t, rapid.IntRange(1, 80).Draw(t, "n"), rapid.IntRange(0, 4).Draw(t, "kept"))
		epsilon := rapid.Float64Range(0.02, 0.999).Draw(t, "epsilon")
		p := v.Prefixes()
		i := 1
		for i < len(p.Order) && p.Reached[i] <= epsilon {
			i++
		}
		if want, used := (PSA{Epsilon: epsilon, Microbatch: 1}).Picker().Pick(v, nil); !slices.Equal(p.Order[:i], want[:used]) {
			t.Fatalf("%v by prefixes, %v by PSA", p.Order[:i], want[:used])
		}
		if r := v.Recall(p.Order[:i]); math.Abs(r-p.Held[i]) > 1e-9 {
			t.Fatalf("%d candidates hold %g, want %g", i, p.Held[i], r)
		}
	})
}

// InfiniGen's definition: tokens whose score is within the margin of the highest,
// in units of q·k; of more than its limit the best.
func TestInfiniGenAgainstItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t, rapid.IntRange(1, 200).Draw(t, "n"), 0)
		p := InfiniGen{Margin: float64(rapid.IntRange(0, 40).Draw(t, "margin")) / 4, Most: rapid.Float64Range(0.01, 1).Draw(t, "most")}
		var want []uint16
		for b, s := range v.Critical {
			if v.Skew*s >= v.Skew*slices.Max(v.Critical)-float32(p.Margin)-1e-5 {
				want = append(want, uint16(b))
			}
		}
		if most := max(1, int(p.Most*float64(len(v.Critical)))); len(want) > most {
			want = sorted(v.Critical, most)
		}
		if got, used := p.Picker().Pick(v, nil); used != len(got) || !slices.Equal(got, want) {
			t.Fatalf("picks %v, %d used; the definition %v", got, used, want)
		}
	})
}

// What is picked and what is not hold all attention together.
func TestRecallAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		v := drawView(t, n, rapid.IntRange(0, 4).Draw(t, "kept"))
		var in, out []uint16
		for b := range n {
			if rapid.Bool().Draw(t, "picked") {
				in = append(in, uint16(b))
			} else {
				out = append(out, uint16(b))
			}
		}
		if sum := v.Recall(in) + v.Recall(out) - v.Recall(nil); math.Abs(sum-1) > 1e-9 {
			t.Fatalf("picked and not picked hold %g", sum)
		}
	})
}
