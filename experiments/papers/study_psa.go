package papers

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/score"
)

// accuracySpec is the study.toml of PSA's Fig. 5.
type accuracySpec struct {
	Target     float64  `toml:"target"` // mean accuracy of requests, share of full attention's
	Models     []string `toml:"models"`
	Microbatch int      `toml:"microbatch"` // of PSA, blocks
	Seeds      []uint64 `toml:"seeds"`
	Workload   struct {
		Datasets []string `toml:"datasets"`
		Requests int      `toml:"requests"` // of each set
	} `toml:"workload"`
	Sample attentionSample `toml:"sample"`
}

// rival is a system of Fig. 5 with the knob that is varied.
type rival struct {
	name          string
	digest        dsa.Digest
	sinks, window int
	tokens        int // of a block
	full          int // first layers, which attend to everything
	gqa           bool
	low, high     float64 // of the knob; more attends to more
	at            func(knob float64) selector
}

// rivals lists the systems. vLLM-sparse is ArkVale, which keeps two blocks at both ends. Algorithm
// 1 keeps none; the newest block is open and has no digest yet. InfiniGen's margin is varied
// without its limit of 20 % of the tokens.
//
// The code of ArkVale (n_unlimited_layers, source/arkvale) and of InfiniGen (load_cache,
// speedup/flexgen/infinigen/flex_opt.py) excludes the first two layers from selection; PSA's
// threshold is one "for each layer" (§1).
func (s *accuracySpec) rivals() []rival {
	return []rival{
		{"vllm-sparse", dsa.CuboidMean, 2, 2, 32, 2, true, 4, 4096,
			func(k float64) selector { return topBlocks(int(k + 0.5)) }},
		{"infinigen", dsa.Speculated, 0, 0, 1, 2, false, 0, 60, speculative},
		{"psa", dsa.CuboidMean, 0, 1, 32, 0, true, -3, 12,
			func(x float64) selector { return progressive(s.psa(x), false) }},
		{"psa-per-head", dsa.CuboidMean, 0, 1, 32, 0, true, -3, 12,
			func(x float64) selector { return progressive(s.psa(x), true) }},
	}
}

// psa returns PSA with the threshold of a logit.
func (s *accuracySpec) psa(logit float64) dsa.PSA {
	return dsa.PSA{Epsilon: 1 / (1 + math.Exp(-logit)), Microbatch: s.Microbatch}
}

// accuracy finds the least KV that each system attends to at the target accuracy, per set.
func (l *Studies) accuracy(spec *accuracySpec, t *run.Table) error {
	type combination struct {
		model, set string
		seed       uint64
		rival      rival
	}
	var all []combination
	for _, model := range spec.Models {
		m, err := llm.Load(model)
		if err != nil {
			return err
		}
		for _, set := range spec.Workload.Datasets {
			for _, seed := range spec.Seeds {
				for _, r := range spec.rivals() {
					if r.gqa || m.QHeads == m.KVHeads {
						all = append(all, combination{model, set, seed, r})
					}
				}
			}
		}
	}
	scores, params := l.scores()
	return addRows(l, t, all, func(c combination) ([]any, error) {
		requests, err := spec.requests(scores, params, c.model, c.set, c.seed, &c.rival)
		if err != nil {
			return nil, err
		}
		u := c.rival.least(requests, spec.Target)
		return []any{c.model, c.set, c.rival.name, c.seed, u.knob, u.share, u.recall, u.accuracy}, nil
	})
}

// requests draws the attention of a set's requests under one system.
func (s *accuracySpec) requests(scores *score.Process, p *score.Params, model, set string,
	seed uint64, r *rival) ([]*attention, error) {
	m, err := llm.Load(model)
	if err != nil {
		return nil, err
	}
	prompts, err := quantilePrompts([]string{set}, s.Workload.Requests, seed, m.Counter())
	if err != nil {
		return nil, err
	}
	sample := s.Sample
	sample.digest, sample.sinks, sample.window, sample.tokens = r.digest, r.sinks, r.window, r.tokens
	sample.queries, sample.full = m.QHeads/m.KVHeads, float64(r.full)/float64(m.Layers)
	out := make([]*attention, len(prompts))
	for i, prompt := range prompts {
		out[i] = sample.of(scores, p, seed, i, min(prompt, m.MaxContext))
	}
	return out, nil
}

// kvUsage is the mean usage over requests at one setting of a system.
type kvUsage struct{ knob, share, recall, accuracy float64 }

func (r *rival) usage(requests []*attention, knob float64) kvUsage {
	sum, n := kvUsage{knob: knob}, float64(len(requests))
	for _, a := range requests {
		u := a.under(r.at(knob))
		sum.share += u.share / n
		sum.recall += u.recall / n
		sum.accuracy += run.AccuracyProxy(u.loss) / n
	}
	return sum
}

// least finds the lowest setting at which the mean accuracy of requests reaches the target, by
// bisection.
func (r *rival) least(requests []*attention, target float64) kvUsage {
	low, high := r.low, r.high
	best := r.usage(requests, high)
	for range 14 {
		u := r.usage(requests, (low+high)/2)
		if u.accuracy >= target {
			best, high = u, u.knob
		} else {
			low = u.knob
		}
	}
	return best
}

// sparsitySpec is the study.toml of PSA's Fig. 2.
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

// sparsityLayer is one layer that the paper plots. Our layer is a draw of the score process whose
// median skew over heads is fitted to the paper's value.
type sparsityLayer struct {
	Name    string  `toml:"name"`
	Dataset string  `toml:"dataset"`
	Skew    float64 `toml:"skew"`
}

// sparsity counts the query tokens that reach the attention threshold with a budget of n blocks per
// head, in the mean over a layer's heads.
func (l *Studies) sparsity(spec *sparsitySpec, t *run.Table) error {
	scores, params := l.scores()
	for _, layer := range spec.Layer {
		for _, seed := range spec.Seeds {
			needs, err := spec.needs(scores, params, &layer, seed)
			if err != nil {
				return err
			}
			for _, budget := range spec.Budgets {
				enough, _ := slices.BinarySearch(needs, budget+1)
				t.Add(layer.Dataset, layer.Name, seed, budget, float64(enough)/float64(len(needs)))
			}
		}
	}
	return nil
}

// needs returns the number of blocks that each query token needs, ascending.
func (s *sparsitySpec) needs(scores *score.Process, p *score.Params, layer *sparsityLayer,
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

// addHeld adds the attention share of the best i+1 blocks, times a factor, to held[i].
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
