package papers

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/traces"
)

// sparsitySpec is what PSA's Fig. 2 measures.
type sparsitySpec struct {
	Weight      float64         `toml:"weight"` // of the attention that blocks must hold
	BlockTokens int             `toml:"block_tokens"`
	Requests    int             `toml:"requests"` // of each set and seed
	Steps       int             `toml:"steps"`    // query tokens of each
	Heads       int             `toml:"heads"`    // at even quantiles of a layer's
	Budgets     []int           `toml:"budgets"`  // blocks
	Seeds       []uint64        `toml:"seeds"`
	Layer       []sparsityLayer `toml:"layer"`
}

// sparsityLayer is one layer that the paper draws. Of the process it is one whose
// heads' median skew is fitted to what the paper says of it.
type sparsityLayer struct {
	Name    string  `toml:"name"`
	Dataset string  `toml:"dataset"`
	Skew    float64 `toml:"skew"`
}

// sparsity counts the query tokens that find enough attention in so many blocks
// of each head, in the mean over a layer's heads.
func (l *Studies) sparsity(e *experiments.Experiment) error {
	var spec sparsitySpec
	if err := decodeStudy(e.Name, &spec); err != nil {
		return err
	}
	p := config.Point{Scores: traces.DefaultScores}
	l.alter(&p)
	scores := traces.NewScores(p.Scores, run.ScoreSeed)
	t := run.NewTable("dataset", "layer", "seed", "budget_blocks", "tokens_share")
	for _, layer := range spec.Layer {
		for _, seed := range spec.Seeds {
			needs, err := spec.needs(scores, &p.Scores, &layer, seed)
			if err != nil {
				return err
			}
			for _, budget := range spec.Budgets {
				enough, _ := slices.BinarySearch(needs, budget+1)
				t.Add(layer.Dataset, layer.Name, seed, budget, float64(enough)/float64(len(needs)))
			}
		}
	}
	return l.write(e, t)
}

// needs returns how many blocks each query token needs, ascending.
func (s *sparsitySpec) needs(scores *traces.Scores, p *traces.ScoreParams, layer *sparsityLayer,
	seed uint64) ([]int, error) {
	prompts, err := quantilePrompts([]string{layer.Dataset}, s.Requests, seed, "llama2")
	if err != nil {
		return nil, err
	}
	var needs []int
	for r, prompt := range prompts {
		held := make([][]float64, s.Steps) // by the best blocks, mean over heads
		for t := range held {
			held[t] = make([]float64, (prompt+s.BlockTokens-1)/s.BlockTokens)
		}
		for h := range s.Heads {
			family := int(des.Hash(seed, uint64(r), uint64(h), 0xf162) >> 20)
			sheet := dsa.Sheet{Setting: dsa.Setting{Digest: dsa.CuboidMean}, Weighs: true, Steps: s.Steps}
			scores.Fill(family, len(held[0]), &sheet)
			var v dsa.View
			for t := range held {
				sheet.View(t, layer.Skew*math.Exp(p.SkewHeads*evenNormal(h, s.Heads)), &v)
				addHeld(held[t], &v, 1/float64(s.Heads))
			}
		}
		for t := range held {
			n, _ := slices.BinarySearch(held[t], s.Weight)
			needs = append(needs, n+1)
		}
	}
	slices.Sort(needs)
	return needs, nil
}

// addHeld adds what the best i+1 blocks hold, times a factor, to held[i].
func addHeld(held []float64, v *dsa.View, factor float64) {
	weights := make([]float64, len(v.Critical))
	all := 0.0
	for b, s := range v.Score[0] {
		weights[b] = -v.Weight(s)
		all += weights[b]
	}
	slices.Sort(weights)
	sum := 0.0
	for i, w := range weights {
		sum += w
		held[i] += factor * sum / all
	}
}
