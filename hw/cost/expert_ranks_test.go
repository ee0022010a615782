package cost

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// spreadShard is one rank of a model whose experts are divided over some of the given ranks.
func spreadShard(t fataler, m llm.Model, ranks, spread int) llm.Model {
	m.ExpertRanks = spread
	shard, err := m.Shard(ranks)
	if err != nil {
		t.Fatal(err)
	}
	return shard
}

// drawn returns the experts that a token chooses: the first of E clocks that ring at random, sooner
// the more popular an expert is.
func drawn(rng *rand.Rand, popularity []float64, k int) []int {
	type clock struct {
		expert int
		rings  float64
	}
	clocks := make([]clock, len(popularity))
	for i, w := range popularity {
		clocks[i] = clock{i, rng.ExpFloat64() / w}
	}
	slices.SortFunc(clocks, func(a, b clock) int { return cmp.Compare(a.rings, b.rings) })
	experts := make([]int, k)
	for i := range experts {
		experts[i] = clocks[i].expert
	}
	return experts
}

// popularities draws the popularity of experts: log-normal.
func popularities(rng *rand.Rand, experts int) []float64 {
	all := make([]float64, experts)
	for i := range all {
		all[i] = math.Exp(0.6 * rng.NormFloat64())
	}
	return all
}

// A layer reads as many experts as drawing each token's by hand gives.
func TestDistinctExpertsAgainstDraws(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const draws = 60
	for _, name := range []string{"deepseek-v3", "gpt-oss-120b", "mixtral-8x7b"} {
		m := mustModel(t, name)
		router := m.Router()
		for _, n := range []int{1, 4, 16, 64} {
			sum := 0.0
			for range draws {
				seen, popularity := map[int]bool{}, popularities(rng, m.Experts)
				for range n {
					for _, e := range drawn(rng, popularity, m.ExpertsPerToken) {
						seen[e] = true
					}
				}
				sum += float64(len(seen)) / draws
			}
			if got := router.Distinct(float64(n)); math.Abs(got/sum-1) > 0.06 {
				t.Errorf("%s, %d tokens: %.4g experts, drawn %.4g", name, n, got, sum)
			}
		}
	}
}

// The fullest rank has as many experts and rows as drawing each token's experts by hand gives.
func TestFullestRankAgainstDraws(t *testing.T) {
	m := mustModel(t, "deepseek-v3")
	rng := rand.New(rand.NewPCG(1, 2))
	const draws = 100
	for _, ranks := range []int{2, 4, 8} {
		shard := spreadShard(t, *m, ranks, ranks)
		priced := experts{model: &shard, router: shard.Router()}
		for _, n := range []int{1, 2, 8, 32, 128, 512} {
			distinct, rows := 0.0, 0.0
			for range draws {
				popularity := popularities(rng, 256)
				touched, copies := make([]map[int]bool, ranks), make([]int, ranks)
				for range n {
					for _, e := range drawn(rng, popularity, 8) {
						r := e * ranks / 256
						if touched[r] == nil {
							touched[r] = map[int]bool{}
						}
						touched[r][e] = true
						copies[r]++
					}
				}
				most, fullest := 0, 0
				for r := range ranks {
					most, fullest = max(most, len(touched[r])), max(fullest, copies[r])
				}
				distinct += float64(most) / draws
				rows += float64(fullest) / draws
			}
			gotExperts, gotRows := priced.fullest(float64(n))
			if math.Abs(gotExperts/distinct-1) > 0.08 || math.Abs(gotRows/rows-1) > 0.08 {
				t.Errorf("%d ranks, %d tokens: %.4g experts and %.4g rows, drawn %.4g and %.4g", ranks, n,
					gotExperts, gotRows, distinct, rows)
			}
		}
	}
}

// Ranks hold together all experts, cut or whole: the same bytes however they are spread.
func TestSpreadExpertsHoldAllWeights(t *testing.T) {
	for _, name := range []string{"deepseek-v3", "glm-5.2", "mixtral-8x7b", "gpt-oss-120b"} {
		m := mustModel(t, name)
		for ranks := 1; ranks <= 8; ranks *= 2 {
			cut := spreadShard(t, *m, ranks, 1)
			for e := 1; e <= ranks; e *= 2 {
				s := spreadShard(t, *m, ranks, e)
				if got, want := s.WeightBytes(), cut.WeightBytes(); math.Abs(float64(got-want)) >
					float64(m.Layers) { // bytes of MXFP4 round up a layer
					t.Errorf("%s, %d ranks, spread over %d: %d bytes, cut %d", name, ranks, e, got, want)
				}
				if e == 1 && s != cut {
					t.Errorf("%s: spread over 1 is not cut: %+v", name, s)
				}
			}
		}
	}
}

// Spread experts cost at least a rank's share of all rows and of all bytes that are touched at the
// card's peaks, no less with more tokens, and experts on one rank cost the same as undivided ones.
func TestLawsOfSpreadExperts(t *testing.T) {
	pairs(t, (*llm.Model).IsMixture, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		ranks := 1 << rapid.IntRange(0, 3).Draw(t, "ranks")
		spread := 1 << rapid.IntRange(0, 3).Draw(t, "spread")
		whole := *m
		whole.ExpertRanks = spread
		s, err := whole.Shard(ranks)
		if (err == nil) != (spread <= ranks && ranks <= 8 && m.Experts%spread == 0 &&
			plainShard(m, ranks, spread)) {
			t.Fatalf("%s, %d ranks, spread over %d: %v", m.Name, ranks, spread, err)
		}
		if err != nil {
			return
		}
		e := newExperts(p, &s)
		n, router := float64(logInt(t, 1<<16, "tokens")), m.Router()
		got, _ := e.of(n)
		more, _ := e.of(n + 1)
		if more < got*(1-0.05) { // as far as more rows of a measured GEMM cost no less
			t.Fatalf("%s on %s: %g tokens take %gs, one more %gs", m.Name, p.Name, n, got, more)
		}
		weights := float64(m.ExpertLinears()) / float64(ranks)
		flops := 2 * n * float64(m.ExpertsPerToken) * weights
		bytes := router.Distinct(n) * weights * m.ExpertBytes()
		if floor := e.each.peak.floor(flops, bytes); got < floor*(1-1e-9) {
			t.Fatalf("%s on %s, %d ranks, spread %d: %g tokens take %gs, physics %gs", m.Name, p.Name,
				ranks, spread, n, got, floor)
		}
		if d, rows := e.fullest(n); d < router.Distinct(n)/float64(spread)*(1-1e-9) ||
			d > float64(m.Experts/spread)*(1+1e-9) || rows < n*float64(m.ExpertsPerToken)/float64(spread) ||
			rows > n*float64(m.ExpertsPerToken) {
			t.Fatalf("%s, spread %d, %g tokens: %g experts and %g rows", m.Name, spread, n, d, rows)
		}
	})
}

// plainShard reports whether the given number of ranks divides all but the experts.
func plainShard(m *llm.Model, ranks, spread int) bool {
	columns := ranks / max(1, min(spread, ranks))
	if spread == 1 || m.SharedExperts > 0 {
		columns = ranks
	}
	free := *m
	free.ExpertRanks, free.ExpertFFN = 0, ranks
	_, err := free.Shard(ranks)
	return err == nil && m.ExpertFFN%columns == 0
}

// Experts that are spread wrongly are refused with what is wrong.
func TestSpreadIsRefused(t *testing.T) {
	for _, c := range []struct {
		model         string
		ranks, spread int
		want          string
	}{
		{"llama3-8b", 2, 2, "llama3-8b has no experts"},
		{"mixtral-8x7b", 2, 4, "want a divisor of the 2 GPUs"},
		{"deepseek-v3", 1, 8, "want a divisor of the 1 GPUs"},
	} {
		m := *mustModel(t, c.model)
		m.ExpertRanks = c.spread
		_, err := m.Shard(c.ranks)
		wantError(t, c.model, err, c.want)
	}
	m := *mustModel(t, "mixtral-8x7b")
	m.Experts, m.ExpertRanks = 12, 8
	_, err := m.Shard(8)
	wantError(t, "12 experts", err, "8 GPUs do not divide the 12 experts")
}
