package score

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// What digests lose, from the geometry of keys. A page is 32 keys of 128 channels, channel i with a
// deviation of 1/i: few channels make most of q·k, as is known of keys after rotary embedding. Keys
// spread about the mean of their page, in some pages more than in others. The pages' spread over
// that between pages is fitted to ArkVale's recall by cuboid-mean; how unequal it is, to its
// finding that cuboid-mean beats mean keys. The errors of all digests follow.
const (
	keyChannels  = 128
	pageSpread   = 0.45 // of a page's keys, over that of pages: fitted
	unequal      = 0.5  // deviation of the spread's logarithm
	likeness     = 0.5  // cosine of the query with the queries that choose representatives
	digestPages  = 300  // candidates of a LongBench request
	digestTrials = 60
)

// geometry is one head's query and pages.
type geometry struct {
	rng   *rand.Rand
	query []float64
}

func newGeometry(rng *rand.Rand, nats float64) *geometry {
	g := &geometry{rng, make([]float64, keyChannels)}
	variance := 0.0
	for i := range g.query {
		g.query[i] = rng.NormFloat64() / float64(i+1)
		variance += math.Pow(g.query[i]/float64(i+1), 2)
	}
	for i := range g.query { // nats by which the scores of page means differ
		g.query[i] *= nats / math.Sqrt(variance)
	}
	return g
}

// page draws a page: its true score, the logarithm of its attention, what each
// digest makes of it, and the spread of its tokens' scores.
func (g *geometry) page() (score float64, estimates [4]float64, within float64) {
	spread := pageSpread * math.Exp(unequal*g.rng.NormFloat64())
	keys := make([][]float64, pageTokens)
	mean := g.vector(1)
	for t := range keys {
		keys[t] = g.vector(spread)
		for i := range mean {
			keys[t][i] += mean[i]
		}
	}
	scores := make([]float64, pageTokens)
	for t, k := range keys {
		scores[t] = dot(g.query, k)
	}
	for i, q := range g.query {
		low, high, deviation := math.Inf(1), math.Inf(-1), 0.0
		for _, k := range keys {
			low, high = min(low, k[i]), max(high, k[i])
		}
		for _, k := range keys {
			deviation += math.Abs(k[i]-(low+high)/2) / pageTokens
		}
		estimates[0] += q*(low+high)/2 + math.Abs(q)*deviation
		estimates[1] += max(q*low, q*high)
	}
	estimates[2] = stat.Mean(scores, nil)
	for _, t := range g.representatives(keys) {
		estimates[3] += scores[t] / 4
	}
	highest := slices.Max(scores)
	for _, s := range scores {
		score += math.Exp(s - highest)
	}
	return highest + math.Log(score), estimates, stat.StdDev(scores, nil)
}

// representatives are the four keys that eight other queries attend to most.
func (g *geometry) representatives(keys [][]float64) []int {
	scale := math.Sqrt(dot(g.query, g.query) / (math.Pi * math.Pi / 6))
	received := make([]float64, len(keys))
	for range 8 {
		other := g.vector(scale * math.Sqrt(1-likeness*likeness))
		for i := range other {
			other[i] += likeness * g.query[i]
		}
		for t, k := range keys {
			received[t] += dot(other, k)
		}
	}
	order := ranked(received)
	return order[:4]
}

func (g *geometry) vector(scale float64) []float64 {
	v := make([]float64, keyChannels)
	for i := range v {
		v[i] = scale * g.rng.NormFloat64() / float64(i+1)
	}
	return v
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func ranked(x []float64) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[b], x[a]) })
	return order
}

// pageRecall is the share of the k best pages that are among the k best by the
// estimate.
func pageRecall(score, estimate []float64, k int) float64 {
	best, hits := ranked(score)[:k], 0
	for _, p := range ranked(estimate)[:k] {
		if slices.Contains(best, p) {
			hits++
		}
	}
	return float64(hits) / float64(k)
}

// The errors of Default follow from the geometry, and its one fitted parameter gives ArkVale's
// published recall by cuboid-mean, of which the first page and the newest are always two.
func TestDigestsFitPublishedRecall(t *testing.T) {
	p := Default
	// deviation of what cuboid-mean tells
	critical := math.Sqrt(1 + p.Drift*p.Drift + p.Jump*p.Jump + p.Noise*p.Noise)
	rng := rand.New(rand.NewPCG(1, 2))
	names := []string{"cuboid-mean", "min-max", "mean", "representative"}
	published := []struct {
		k      int
		recall float64
	}{{5, 0.82}, {15, 0.84}, {40, 0.89}}
	var correlation [4]float64
	recall, inPage, between := make([]float64, len(published)), 0.0, 0.0
	for range digestTrials {
		g := newGeometry(rng, p.Skew*critical)
		score := make([]float64, digestPages)
		var estimates [4][]float64
		for b := range score {
			var e [4]float64
			var within float64
			score[b], e, within = g.page()
			inPage += within / digestPages / digestTrials
			for i := range e {
				estimates[i] = append(estimates[i], e[i])
			}
		}
		between += stat.StdDev(score, nil) / digestTrials
		for i := range estimates {
			correlation[i] += stat.Correlation(score, estimates[i], nil) / digestTrials
		}
		for i, q := range published {
			found := pageRecall(score, estimates[0], q.k-2) * float64(q.k-2)
			recall[i] += (found + 2) / float64(q.k) / digestTrials
		}
	}
	for i, q := range published {
		t.Logf("recall of the top %d pages by cuboid-mean: %.3f, ArkVale %.2f", q.k, recall[i], q.recall)
		if math.Abs(recall[i]-q.recall) > 0.03 {
			t.Errorf("recall of the top %d pages is %.3f, ArkVale %.2f", q.k, recall[i], q.recall)
		}
	}
	truth := critical / correlation[0]
	follows := func(name string, got, want float64) {
		t.Logf("%s: %.3f follows, %g is set", name, want, got)
		if math.Abs(got-want) > 0.04 {
			t.Errorf("%s is %g, %.3f follows from the geometry", name, got, want)
		}
	}
	off := func(r float64) float64 { return math.Sqrt(1/(r*r) - 1) }
	for i, name := range names {
		t.Logf("%s: correlation with the true score %.3f", name, correlation[i])
	}
	follows("error", p.Error, critical*off(correlation[0]))
	follows("min_max_error", p.MinMaxError, truth*off(correlation[1]))
	follows("mean_error", p.MeanError, truth*off(correlation[2]))
	follows("representative_error", p.RepresentativeError, truth*off(correlation[3]))
	follows("within", p.Within, truth*inPage/between)
	follows("speculation_error", p.SpeculationError, math.Hypot(truth, p.Within)*off(layerCosine))
	if correlation[0] < correlation[2] || correlation[0] < correlation[1] {
		t.Errorf("cuboid-mean is not the best: %.3f", correlation)
	}
}

// layerCosine is how alike the inputs of two layers in a row are. Assumed: some
// 0.9 for Llama-2.
const layerCosine = 0.9
