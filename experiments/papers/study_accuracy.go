package papers

import (
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/traces"
)

// accuracySpec is what PSA's Fig. 5 measures.
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

// rival is a system of Fig. 5 with the one knob that is turned.
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

// rivals lists the systems. vLLM-sparse is ArkVale, which keeps two blocks at
// both ends. Algorithm 1 keeps none; the newest block is open and has no digest
// yet. InfiniGen's margin is turned without its limit of 20 % of the tokens.
//
// The code of ArkVale (n_unlimited_layers, source/arkvale) and of InfiniGen
// (load_cache, speedup/flexgen/infinigen/flex_opt.py) leaves the first two layers
// without a selection; PSA's threshold is one "for each layer" (§1).
func (s *accuracySpec) rivals() []rival {
	return []rival{
		{"vllm-sparse", dsa.CuboidMean, 2, 2, 32, 2, true, 4, 4096,
			func(k float64) selector { return topBlocks{int(k + 0.5)} }},
		{"infinigen", dsa.Speculated, 0, 0, 1, 2, false, 0, 60,
			func(m float64) selector { return speculative(m) }},
		{"psa", dsa.CuboidMean, 0, 1, 32, 0, true, -3, 12, func(x float64) selector {
			return progressive(s.psa(x), false)
		}},
		{"psa-per-head", dsa.CuboidMean, 0, 1, 32, 0, true, -3, 12, func(x float64) selector {
			return progressive(s.psa(x), true)
		}},
	}
}

// psa is PSA at the logit of a threshold.
func (s *accuracySpec) psa(logit float64) dsa.PSA {
	return dsa.PSA{Epsilon: 1 / (1 + math.Exp(-logit)), Microbatch: s.Microbatch}
}

// accuracy looks for the least KV that each system attends to at the target, set
// by set.
func (l *Studies) accuracy(e *experiments.Experiment) error {
	var spec accuracySpec
	if err := decodeStudy(e.Name, &spec); err != nil {
		return err
	}
	p := config.Point{Scores: traces.DefaultScores}
	l.alter(&p)
	scores := traces.NewScores(p.Scores, run.ScoreSeed)
	type job struct {
		model, set string
		seed       uint64
		rival      rival
		found      kvUsage
	}
	var jobs []*job
	for _, model := range spec.Models {
		m, err := hw.LoadModel(model)
		if err != nil {
			return err
		}
		for _, set := range spec.Workload.Datasets {
			for _, seed := range spec.Seeds {
				for _, r := range spec.rivals() {
					if r.gqa || m.QHeads == m.KVHeads {
						jobs = append(jobs, &job{model: model, set: set, seed: seed, rival: r})
					}
				}
			}
		}
	}
	group, ctx := errgroup.WithContext(l.ctx)
	workers := l.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	group.SetLimit(workers)
	for _, j := range jobs {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			requests, err := spec.requests(scores, &p.Scores, j.model, j.set, j.seed, &j.rival)
			j.found = j.rival.least(requests, spec.Target)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	t := run.NewTable("model", "dataset", "system", "seed", "knob", "kv_share", "recall",
		"accuracy_proxy")
	for _, j := range jobs {
		t.Add(j.model, j.set, j.rival.name, j.seed,
			j.found.knob, j.found.share, j.found.recall, j.found.accuracy)
	}
	return l.write(e, t)
}

// requests draws the attention of a set's requests under one system.
func (s *accuracySpec) requests(scores *traces.Scores, p *traces.ScoreParams, model, set string,
	seed uint64, r *rival) ([]*attention, error) {
	m, err := hw.LoadModel(model)
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

// kvUsage is the mean over requests at one setting of a system.
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

// least finds the lowest setting at which the requests' mean accuracy is at the
// target, by bisection.
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
