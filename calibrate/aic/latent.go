package aic

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
)

// Sizes of the grids of attention over latents.
var (
	latentRequests = []int64{1, 4, 16, 64, 256, 1024}
	latentTokens   = []int64{2, 1024, 4096, 16384, 65536, 131072}
	latentHeads    = []int64{8, 16, 32, 64, 128}

	latentQueries = []int64{16, 128, 512, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 32768}
	latentPrompts = []int64{1, 8}
)

// prefillAndDecode returns the modules of the two tables whose names begin with the given word, and
// the imported costs on the card at its full clock, like GEMMs and modules. It notes a missing
// table; then there are no modules.
func (im *importer) prefillAndDecode(of string) (p *hw.Profile, prefill, decode []module, c common,
	err error) {
	context, generation := of+"_context_module_perf", of+"_generation_module_perf"
	if p, err = im.costs.On(im.card); err != nil {
		return
	}
	p.Clock.Gain = nil
	if prefill, c, err = im.modules(p, context, "vllm"); err != nil {
		return
	}
	if decode, _, err = im.modules(p, generation, "vllm"); err != nil {
		return
	}
	if len(prefill) == 0 || len(decode) == 0 {
		im.missing(context+" or "+generation, "such attention is derived from dense kernels")
		prefill = nil
	}
	return p, prefill, decode, c, nil
}

// latent makes grids for layers with latents and no indexer from whole modules, without their
// linears.
func (im *importer) latent() error {
	_, prefill, decode, c, err := im.prefillAndDecode("mla")
	if err != nil || len(prefill) == 0 {
		return err
	}
	for _, kv := range []string{"bf16", "fp8"} {
		err := im.latentGrid(hw.Grid{Kernel: hw.GridLatent, Type: kv, Axes: []hw.Axis{
			axis("requests", latentRequests), axis("tokens", latentTokens),
			axis("heads", latentHeads)}}, "decode", decode, c)
		if err != nil {
			return err
		}
		err = im.latentGrid(hw.Grid{Kernel: hw.GridLatentPrefill, Type: kv, Axes: []hw.Axis{
			axis("tokens", latentQueries), axis("prompts", latentPrompts),
			axis("heads", latentHeads)}}, "prefill", prefill, c)
		if err != nil {
			return err
		}
	}
	return nil
}

// restOf returns the times of modules with 16-bit weights, whose linears are not host-bound, less
// their linears, which other grids price, in ms; and the median of the shortest, in s.
func restOf(kv string, modules []module) (times map[hw.Sizes]float64, gap float64) {
	times = map[hw.Sizes]float64{}
	var gaps []float64
	for i := range modules {
		m := &modules[i]
		if m.model.KVType() != kv || m.model.WeightBytesEach != 2 {
			continue
		}
		at := m.sizes()
		times[at] = 1e3 * (m.seconds - m.linears)
		if m.work.Tokens <= 16 && m.work.DecodeTokens <= 256 {
			gaps = append(gaps, m.seconds-m.linears)
		}
	}
	if len(gaps) > 0 {
		gap = median(gaps)
	}
	return times, gap
}

// latentGrid makes a grid of modules. They were launched one by one, so it replaces the median gap
// of the shortest modules by the launches of a layer in a CUDA graph. It judges the grid by the
// modules that are not points of it.
func (im *importer) latentGrid(g hw.Grid, part string, modules []module, c common) error {
	times, gap := restOf(g.Type, modules)
	if gap == 0 {
		return nil
	}
	launch := gap
	if f := &im.costs.Selected.Launch; f.Set() {
		launch = f.SI()
	}
	for at, t := range times {
		times[at] = max(t-1e3*gap, 0) + 1e3*launch
	}
	if err := im.moduleGrid(g, times, c, "DeepSeek-V3"); err != nil {
		return err
	}
	made := &im.costs.Grids[len(im.costs.Grids)-1]
	made.Source += fmt.Sprintf("; modules less their linears and %.3g us between launches",
		1e6*(gap-launch))
	im.judgeModules("latents, "+part, g.Type, len(times), modules,
		func(m *module) (seconds float64, inside, seen bool) {
			at := m.sizes()
			inside, on := place(made, at)
			return m.linears + cost.GridSeconds(made, at) + gap - launch, inside,
				on && m.model.WeightBytesEach == 2
		})
	return nil
}

// moduleGrid adds a grid of modules without judging it, because whole modules are judged.
func (im *importer) moduleGrid(g hw.Grid, times map[hw.Sizes]float64, c common,
	models string) error {
	before := len(im.costs.Fits)
	err := im.grid(g, times, c, []string{"modules of " + models})
	im.costs.Fits = im.costs.Fits[:before]
	return err
}

// judgeModules judges the modules of a KV type. price returns a module's seconds, whether it is
// within the grids, and whether a grid used it.
func (im *importer) judgeModules(name, kv string, points int, modules []module,
	price func(m *module) (seconds float64, inside, seen bool)) {
	var off []Judged
	for i := range modules {
		m := &modules[i]
		if m.model.KVType() == kv {
			if t, inside, seen := price(m); inside {
				off = append(off, Judged{float64(m.work.Tokens), m.seconds, t, !seen})
			}
		}
	}
	im.judge(name+" modules, KV of "+kv, points, off)
}

// sizes returns a module's coordinates in its grid.
func (m *module) sizes() hw.Sizes {
	heads, index := float64(m.model.QHeads), float64(m.model.IndexHeads)
	n, context := float64(m.work.Decodes), float64(m.work.DecodeTokens)
	switch {
	case n > 0 && m.model.IsIndexed():
		return hw.Sizes{n, context / n, index, heads}
	case n > 0:
		return hw.Sizes{n, context / n, heads}
	case m.model.IsIndexed():
		return hw.Sizes{float64(m.work.Prefill[0].Query), index, heads}
	}
	return hw.Sizes{float64(m.work.Prefill[0].Query), float64(len(m.work.Prefill)), heads}
}
