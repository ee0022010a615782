package papers

import (
	"math/rand/v2"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// prefillSpec is the study.toml of MInference's Fig. 1b.
type prefillSpec struct {
	Model       string          `toml:"model"`
	GPU         string          `toml:"gpu"`
	Tokens      []int           `toml:"tokens"`
	Elementwise float64         `toml:"elementwise"`   // times the profile's
	IndexHost   float64         `toml:"index_host_ms"` // of each head with an index
	System      []prefillSystem `toml:"system"`
	Parallel    struct {
		GPUs      int      `toml:"gpus"`
		AllReduce float64  `toml:"all_reduce_gb_s"`
		Seeds     []uint64 `toml:"seeds"`
	} `toml:"parallel"`
}

type prefillSystem struct {
	Name      string    `toml:"name"`
	Prefill   string    `toml:"prefill"`
	Published []float64 `toml:"published"` // seconds
}

// card returns a model and the profile of its card.
func (l *Studies) card(name, gpu string) (llm.Model, *hw.Profile, error) {
	model, err := llm.Load(name)
	if err != nil {
		return model, nil, err
	}
	p := config.Point{Model: name, GPU: gpu,
		System: sim.Spec{Engine: paperEngine}}
	l.alter(&p)
	profile, err := p.Machine()
	return model, profile, err
}

// prompts prices one prompt under each system at each length, and on several cards.
func (l *Studies) prompts(spec *prefillSpec, t *run.Table) error {
	model, gpu, err := l.card(spec.Model, spec.GPU)
	if err != nil {
		return err
	}
	for _, s := range spec.System {
		published, _ := config.PresetNamed(config.Presets(), "vllm-minference")
		published.Spec.Prefill.Attention = s.Prefill
		mix, err := config.PrefillMix(&model, &published.Spec)
		if err != nil {
			return err
		}
		for i, tokens := range spec.Tokens {
			all, attention, index := spec.price(&model, gpu, tokens, 1,
				func(layer, _ int) []pattern.Group { return mix.Layer(layer) })
			t.Add(s.Name, 1, "", tokens, all, attention, index, s.Published[i])
		}
	}
	var heads []pattern.Group
	for _, g := range pattern.Counts("llama3-8b-262k") {
		heads = append(heads, slices.Repeat([]pattern.Group{{Head: g.Head, Heads: 1}}, int(g.Heads))...)
	}
	gpus, tokens := spec.Parallel.GPUs, spec.Tokens[len(spec.Tokens)-1]
	each := model.QHeads / gpus
	for _, seed := range spec.Parallel.Seeds {
		own := slices.Clone(heads)
		rng := rand.New(rand.NewPCG(des.Hash(seed, 0x3141), 0))
		rng.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
		all, attention, index := spec.price(&model, gpu, tokens, gpus,
			func(layer, card int) []pattern.Group { return own[layer*model.QHeads+card*each:][:each] })
		t.Add("MInference", gpus, seed, tokens, all, attention, index, 40)
	}
	return nil
}

// price returns the seconds of a prompt, and the parts spent in attention and in indices including
// launches. Each card computes its own heads, and a layer waits for the slowest card. Linears and
// elementwise kernels divide evenly. Two all-reduces per layer carry the hidden states.
func (s *prefillSpec) price(m *llm.Model, gpu *hw.Profile, tokens, gpus int,
	heads func(layer, card int) []pattern.Group) (all, attention, index float64) {
	for layer := range m.Layers {
		longest := [2]float64{}
		for card := range gpus {
			groups := heads(layer, card)
			a, x := cost.PrefillSeconds(gpu, m, groups, sim.Span{Query: tokens}, 0)
			for _, g := range groups {
				if g.Kind.Indexed() {
					x += g.Heads * s.IndexHost / 1e3
				}
			}
			if a+x > longest[0]+longest[1] {
				longest = [2]float64{a, x}
			}
		}
		attention, index = attention+longest[0], index+longest[1]
	}
	costs, work, n := cost.Of(gpu, m), sim.Work{Tokens: tokens}, float64(gpus)
	dense := 1 / n * (cost.Seconds(costs.GEMM, work) +
		s.Elementwise*cost.Seconds(costs.Elementwise, work))
	hidden := 2 * float64(tokens) * float64(m.Hidden)
	allReduce := 2 * 2 * (n - 1) / n * hidden / (s.Parallel.AllReduce * 1e9)
	return attention + index + float64(m.Layers)*(dense+allReduce), attention, index
}

// kernelSpec is the study.toml of MInference's Figs. 10 to 12.
type kernelSpec struct {
	Model  string `toml:"model"`
	GPU    string `toml:"gpu"`
	Tokens []int  `toml:"tokens"`
	Mix    string `toml:"mix"`
}

// kernels prices one head of each pattern, and counts its sparsity and the number of heads with it.
func (l *Studies) kernels(spec *kernelSpec, t *run.Table) error {
	head, gpu, err := l.card(spec.Model, spec.GPU)
	if err != nil {
		return err
	}
	head.QHeads, head.KVHeads = 1, 1 // of a layer
	mean := func(name string, groups ...pattern.Group) {
		for _, tokens := range spec.Tokens {
			var attention, index, density, heads float64
			for _, g := range groups {
				one := []pattern.Group{{Head: g.Head, Heads: 1}}
				a, x := cost.PrefillSeconds(gpu, &head, one, sim.Span{Query: tokens}, 0)
				attention, index = attention+g.Heads*a, index+g.Heads*x
				density, heads = density+g.Heads*g.Density(tokens), heads+g.Heads
			}
			t.Add(name, heads, tokens, 1e3*attention/heads, 1e3*index/heads, 1-density/heads)
		}
	}
	for _, kind := range []pattern.Kind{pattern.Dense, pattern.AShape, pattern.BlockSparse} {
		h, _ := pattern.Published(kind)
		mean(string(kind), pattern.Group{Head: h, Heads: 1})
	}
	counts := pattern.Counts(spec.Mix)
	mean(string(pattern.VerticalSlash), counts...)
	for _, g := range counts {
		mean(g.String(), g)
	}
	return nil
}
