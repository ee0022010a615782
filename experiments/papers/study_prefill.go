package papers

import (
	"math/rand/v2"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// prefillSpec is what MInference's Fig. 1b measures.
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

// promptCosts are the parts of one prompt's prefill.
type promptCosts struct {
	spec    *prefillSpec
	model   hw.Model
	gpu     *hw.Profile
	layer   hw.Costs
	perCard float64 // share of linears and elementwise kernels that a card has
}

func (l *Studies) promptCosts(spec *prefillSpec) (*promptCosts, error) {
	model, err := hw.LoadModel(spec.Model)
	if err != nil {
		return nil, err
	}
	p := config.Point{Model: spec.Model, GPU: spec.GPU, System: sim.Spec{Engine: paperEngine}}
	l.alter(&p)
	gpu, err := p.Machine()
	if err != nil {
		return nil, err
	}
	return &promptCosts{spec, model, gpu, gpu.Costs(&model), 1}, nil
}

// dense returns the seconds of a layer's linears and elementwise kernels.
func (c *promptCosts) dense(tokens int) float64 {
	w := sim.Work{Tokens: tokens}
	return c.perCard * (hw.Seconds(c.layer.GEMM, w) +
		c.spec.Elementwise*hw.Seconds(c.layer.Elementwise, w))
}

// attention returns the seconds of a layer's attention, and of its indices with their launches.
func (c *promptCosts) attention(groups []pattern.Group, tokens int) (attention, index float64) {
	attention, index = c.gpu.PrefillSeconds(&c.model, groups, sim.Span{Query: tokens}, 0)
	for _, g := range groups {
		if g.Kind.Indexed() {
			index += g.Heads * c.spec.IndexHost / 1e3
		}
	}
	return attention, index
}

// prompts prices one prompt under each system at each length, and on several cards.
func (l *Studies) prompts(e *experiments.Experiment) error {
	var spec prefillSpec
	if err := decodeStudy(e.Name, &spec); err != nil {
		return err
	}
	c, err := l.promptCosts(&spec)
	if err != nil {
		return err
	}
	t := run.NewTable(
		"system", "gpus", "seed", "tokens", "seconds", "attention_s", "index_s", "published_s")
	for _, s := range spec.System {
		mix, err := config.PrefillMix(&c.model, publishedPrefill(s.Prefill))
		if err != nil {
			return err
		}
		for i, tokens := range spec.Tokens {
			attention, index := 0.0, 0.0
			for layer := range c.model.Layers {
				a, x := c.attention(mix.Layer(layer), tokens)
				attention, index = attention+a, index+x
			}
			all := attention + index + float64(c.model.Layers)*c.dense(tokens)
			t.Add(s.Name, 1, "", tokens, all, attention, index, s.Published[i])
		}
	}
	c.perCard = 1 / float64(spec.Parallel.GPUs)
	for _, seed := range spec.Parallel.Seeds {
		tokens := spec.Tokens[len(spec.Tokens)-1]
		all, attention, index := c.parallel(seed, tokens)
		t.Add("MInference", spec.Parallel.GPUs, seed, tokens, all, attention, index, 40)
	}
	return l.write(e, t)
}

// publishedPrefill is a system that prefills so, with published sizes.
func publishedPrefill(prefill string) *sim.Spec {
	p, _ := config.PresetNamed(config.Presets(), "vllm-minference")
	p.Spec.PrefillAttention = prefill
	return &p.Spec
}

// parallel prices a prompt whose query heads are divided among cards.
func (c *promptCosts) parallel(seed uint64, tokens int) (all, attention, index float64) {
	var heads []pattern.Head
	for _, g := range pattern.Counts("llama3-8b-262k") {
		for range int(g.Heads) {
			heads = append(heads, g.Head)
		}
	}
	rng := rand.New(rand.NewPCG(des.Hash(seed, 0x3141), 0))
	rng.Shuffle(len(heads), func(i, j int) { heads[i], heads[j] = heads[j], heads[i] })
	each := c.model.QHeads / c.spec.Parallel.GPUs
	for layer := range c.model.Layers {
		longest := [2]float64{}
		for card := range c.spec.Parallel.GPUs {
			var groups []pattern.Group
			for _, h := range heads[layer*c.model.QHeads+card*each:][:each] {
				groups = append(groups, pattern.Group{Head: h, Heads: 1})
			}
			if a, x := c.attention(groups, tokens); a+x > longest[0]+longest[1] {
				longest = [2]float64{a, x}
			}
		}
		attention, index = attention+longest[0], index+longest[1]
	}
	n := float64(c.spec.Parallel.GPUs)
	hidden := 2 * float64(tokens) * float64(c.model.Hidden)
	allReduce := 2 * 2 * (n - 1) / n * hidden / (c.spec.Parallel.AllReduce * 1e9) // two a layer
	return attention + index + float64(c.model.Layers)*(c.dense(tokens)+allReduce), attention, index
}

// kernelSpec is what MInference's Figs. 10 to 12 measure.
type kernelSpec struct {
	Model  string `toml:"model"`
	GPU    string `toml:"gpu"`
	Tokens []int  `toml:"tokens"`
	Mix    string `toml:"mix"`
}

// kernels prices one head of each pattern, and counts how sparse it is and how many heads have
// it.
func (l *Studies) kernels(e *experiments.Experiment) error {
	var spec kernelSpec
	if err := decodeStudy(e.Name, &spec); err != nil {
		return err
	}
	c, err := l.promptCosts(&prefillSpec{Model: spec.Model, GPU: spec.GPU})
	if err != nil {
		return err
	}
	head := c.model // of which a layer has one head
	head.QHeads, head.KVHeads = 1, 1
	t := run.NewTable("pattern", "heads", "tokens", "kernel_ms", "index_ms", "sparsity")
	counts := pattern.Counts(spec.Mix)
	mean := func(name string, groups []pattern.Group) {
		for _, tokens := range spec.Tokens {
			var attention, index, density, heads float64
			for _, g := range groups {
				one := []pattern.Group{{Head: g.Head, Heads: 1}}
				a, x := c.gpu.PrefillSeconds(&head, one, sim.Span{Query: tokens}, 0)
				attention, index = attention+g.Heads*a, index+g.Heads*x
				density, heads = density+g.Heads*g.Density(tokens), heads+g.Heads
			}
			t.Add(name, heads, tokens, 1e3*attention/heads, 1e3*index/heads, 1-density/heads)
		}
	}
	for _, kind := range []pattern.Kind{pattern.Dense, pattern.AShape, pattern.BlockSparse} {
		h, _ := pattern.Published(kind)
		mean(string(kind), []pattern.Group{{Head: h, Heads: 1}})
	}
	mean(string(pattern.VerticalSlash), counts)
	for _, g := range counts {
		mean(g.String(), []pattern.Group{g})
	}
	return l.write(e, t)
}
