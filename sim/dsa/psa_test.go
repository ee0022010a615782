package dsa

import (
	"math"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// algorithm1 is PSA's Algorithm 1 for one query head, line by line, with microbatches of m blocks.
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
	sort.SliceStable(ranked,
		func(i, j int) bool { return v.Critical[ranked[i]] > v.Critical[ranked[j]] })
	left := kept + n          // 7
	for b := range kept + n { // 8, 9
		var as float64 // 10
		if b < kept {
			as = math.Exp(float64(v.Skew * v.Kept[b]))
		} else {
			as = math.Exp(float64(v.Skew * v.Score[0][ranked[b-kept]]))
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
	return &View{Critical: row("critical", n), Score: [][]float32{row("score", n)},
		Kept: row("kept", kept), Skew: float32(rapid.IntRange(1, 12).Draw(t, "skew")) / 4}
}

// drawHeads draws the scores of a layer's KV heads, each shared by the given number of query heads.
func drawHeads(t *rapid.T, heads, queries, n, kept int) []*View {
	views := make([]*View, heads)
	for h := range views {
		views[h] = drawView(t, n, kept)
		for len(views[h].Score) < queries {
			views[h].Score = append(views[h].Score, drawView(t, n, 0).Score[0])
		}
	}
	return views
}

// jointly is Algorithm 1 where all the query heads of the given KV heads go on
// until the mean of what they take themselves to have seen passes the threshold.
// It returns how many candidates each KV head attends to.
func jointly(views []*View, m int, epsilon float64) int {
	kept, n := len(views[0].Kept), len(views[0].Critical)
	for used := 1; used < n; used++ {
		if (kept+used)%m != 0 {
			continue
		}
		mean, queries := 0.0, 0
		for _, v := range views {
			order := inOrder(v.Critical)
			for _, scores := range v.Score {
				asAcc, asMin := 0.0, math.Inf(1)
				for _, s := range v.Kept {
					asAcc += math.Exp(float64(v.Skew * s))
				}
				for _, b := range order[:used] {
					as := math.Exp(float64(v.Skew * scores[b]))
					asAcc, asMin = asAcc+as, min(asMin, as)
				}
				mean += asAcc / (asAcc + asMin*float64(n-used))
				queries++
			}
		}
		if mean/float64(queries) > epsilon {
			return used
		}
	}
	return n
}

// inOrder is all candidates by a naive stable sort, the most critical first.
func inOrder(critical []float32) []uint16 {
	order := make([]uint16, len(critical))
	for i := range order {
		order[i] = uint16(i)
	}
	sort.SliceStable(order, func(i, j int) bool { return critical[order[i]] > critical[order[j]] })
	return order
}

// A KV head that query heads share ends by the mean of these alone.
func TestPSAOfSharedKVHeads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawHeads(t, 1, rapid.IntRange(1, 4).Draw(t, "queries"), rapid.IntRange(1, 60).Draw(t, "n"),
			rapid.IntRange(0, 4).Draw(t, "kept"))
		p := PSA{Epsilon: rapid.Float64Range(0.02, 0.999).Draw(t, "epsilon"),
			Microbatch: rapid.IntRange(1, 12).Draw(t, "m")}
		got, used := p.Picker().Pick(v[0], nil)
		if want := jointly(v, p.Microbatch, p.Epsilon); used != want ||
			!slices.Equal(got, inOrder(v[0].Critical)[:want]) {
			t.Fatalf("attends to %d of %v, want %d", used, got, want)
		}
	})
}

// The heads of a layer end together, where the naive reference has the mean of all
// pass the threshold; one head alone ends where it does by itself.
func TestPSALayerAgainstAlgorithm1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, kept := rapid.IntRange(1, 60).Draw(t, "n"), rapid.IntRange(0, 4).Draw(t, "kept")
		views := drawHeads(t, rapid.IntRange(1, 5).Draw(t, "heads"),
			rapid.IntRange(1, 3).Draw(t, "queries"), n, kept)
		p := PSA{Epsilon: rapid.Float64Range(0.02, 0.999).Draw(t, "epsilon"),
			Microbatch: rapid.IntRange(1, 12).Draw(t, "m"), Ahead: rapid.IntRange(0, 1).Draw(t, "ahead")}
		used, picked := agree(PSALayer{p}, views, rapid.IntRange(0, n).Draw(t, "guess"))
		if want := jointly(views, p.Microbatch, p.Epsilon); used != want ||
			picked != min(n, used+p.Ahead*p.Microbatch) {
			t.Fatalf("attends to %d and loads %d, want %d of %d", used, picked, want, n)
		}
		if _, alone := p.Picker().Pick(views[0], nil); alone != jointly(views[:1], p.Microbatch,
			p.Epsilon) {
			t.Fatalf("one head attends to %d", alone)
		}
	})
}

// agree is a policy's decision from all that its heads can say.
func agree(p ByLayer, views []*View, guess int) (used, picked int) {
	n, kept := len(views[0].Critical), len(views[0].Kept)
	reports := make([][]float32, len(views))
	for h, v := range views {
		order := inOrder(v.Critical)
		reports[h] = p.Report(v, func(i int) int { return int(order[i]) }, n+guess+1, nil)
	}
	stop, load := p.Decide(n, kept, guess, func(i int) float64 {
		sum := 0.0
		for h := range reports {
			sum += float64(reports[h][i])
		}
		return sum / float64(len(reports))
	})
	return p.CountAt(stop, n, kept), p.CountAt(load, n, kept)
}

func TestPSAAgainstAlgorithm1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(1, 20).Draw(t, "m")
		v := drawView(t, rapid.IntRange(1, 120).Draw(t, "n"), rapid.IntRange(0, 6).Draw(t, "kept"))
		p := PSA{Epsilon: rapid.Float64Range(0.02, 0.999).Draw(t, "epsilon"), Microbatch: m,
			Ahead: rapid.IntRange(0, 2).Draw(t, "ahead")}
		want := algorithm1(v, m, p.Epsilon)
		got, used := p.Picker().Pick(v, nil)
		if !slices.Equal(got[:used], want) {
			t.Fatalf("attends to %v, Algorithm 1 to %v", got[:used], want)
		}
		if ahead := min(len(v.Critical), used+p.Ahead*m); len(got) != ahead {
			t.Fatalf("%d loaded with %d attended to, want %d", len(got), used, ahead)
		}
		if r := v.Recall(got[:used]).Share; r > 1+1e-6 || r <= 0 {
			t.Fatalf("holds %g of the attention", r)
		}
	})
}

// A prefix is what PSA attends to at every threshold, ends where the share passes it, and holds the
// share that Recall returns.
func TestPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t, rapid.IntRange(1, 80).Draw(t, "n"), rapid.IntRange(0, 4).Draw(t, "kept"))
		epsilon := rapid.Float64Range(0.02, 0.999).Draw(t, "epsilon")
		p := v.Prefixes()
		i := 1
		for i < len(p.Order) && p.Reached[0][i] <= epsilon {
			i++
		}
		if want, used := (PSA{Epsilon: epsilon, Microbatch: 1}).Picker().Pick(v, nil); !slices.Equal(
			p.Order[:i], want[:used]) {
			t.Fatalf("%v by prefixes, %v by PSA", p.Order[:i], want[:used])
		}
		if r := v.Recall(p.Order[:i]).Share; math.Abs(float64(r)-p.Held[0][i]) > 1e-6 {
			t.Fatalf("%d candidates hold %g, want %g", i, p.Held[0][i], r)
		}
	})
}

// InfiniGen's definition: as many tokens as have, in the mean over the heads of the
// layer, a score within the margin of the highest, in units of q·k; not more than
// its limit.
func TestInfiniGenAgainstItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 120).Draw(t, "n")
		views := drawHeads(t, rapid.IntRange(1, 5).Draw(t, "heads"), 1, n, 0)
		p := InfiniGen{Margin: float64(rapid.IntRange(0, 40).Draw(t, "margin")) / 4,
			Most: rapid.Float64Range(0.01, 1).Draw(t, "most")}
		within := 0
		for _, v := range views {
			for _, s := range v.Critical {
				if v.Skew*s >= v.Skew*slices.Max(v.Critical)-float32(p.Margin)-1e-5 {
					within++
				}
			}
		}
		want := min(max(1, within/len(views)), max(1, int(p.Most*float64(n))))
		if used, picked := agree(p, views, 0); used != want || picked != want {
			t.Fatalf("attends to %d, loads %d; the definition %d", used, picked, want)
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
		if sum := v.Recall(in).Share + v.Recall(out).Share - v.Recall(nil).Share; math.Abs(
			float64(sum)-1) > 1e-6 {
			t.Fatalf("picked and not picked hold %g", sum)
		}
	})
}
