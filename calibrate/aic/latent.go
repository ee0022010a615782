package aic

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
)

// Sizes of the grids of attention over latents.
var (
	latentRequests = []int64{1, 4, 16, 64, 256, 1024}
	latentTokens   = []int64{2, 1024, 4096, 16384, 65536, 131072}
	latentHeads    = []int64{8, 16, 32, 64, 128}

	latentQueries = []int64{16, 128, 512, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 32768}
	latentPrompts = []int64{1, 8}
)

// latent makes grids for layers with latents and no indexer from whole modules, without their
// linears.
func (im *importer) latent() error {
	const context, generation = "mla_context_module_perf", "mla_generation_module_perf"
	p, err := im.costs.On(im.card)
	if err != nil {
		return err
	}
	p.Clock.Gain = nil // modules were measured at the full clock, like GEMMs
	prefill, c, err := im.modules(p, context, "vllm")
	if err != nil {
		return err
	}
	decode, _, err := im.modules(p, generation, "vllm")
	if err != nil {
		return err
	}
	if len(prefill) == 0 || len(decode) == 0 {
		im.missing(context+" or "+generation, "attention over latents is derived from dense kernels")
		return nil
	}
	for _, kv := range []string{"bf16", "fp8"} {
		// 16-bit weights, because their linears are not host-bound
		err := im.latentGrid(hw.Grid{Kernel: hw.GridLatent, Type: kv, Axes: []hw.Axis{
			axis("requests", latentRequests), axis("tokens", latentTokens),
			axis("heads", latentHeads)}}, "decode", 2, decode, c)
		if err != nil {
			return err
		}
		// the model's own weights
		err = im.latentGrid(hw.Grid{Kernel: hw.GridLatentPrefill, Type: kv, Axes: []hw.Axis{
			axis("tokens", latentQueries), axis("prompts", latentPrompts),
			axis("heads", latentHeads)}}, "prefill", 1, prefill, c)
		if err != nil {
			return err
		}
	}
	return nil
}

// latentGrid makes a grid of modules with weightBytes bytes per weight. It subtracts the time of
// their linears, which other grids price. Modules were launched one by one, so it replaces the
// median gap of the shortest modules by the launches of a layer in a CUDA graph. It judges the grid
// by the modules that are not points of it.
func (im *importer) latentGrid(g hw.Grid, part string, weightBytes int, modules []module,
	c common) error {
	times := map[hw.Sizes]float64{}
	var gaps []float64
	for i := range modules {
		m := &modules[i]
		if hw.KVType(m.model) != g.Type || m.model.WeightBytesEach != weightBytes {
			continue
		}
		at := m.sizes()
		times[at] = 1e3 * (m.seconds - m.linears)
		if m.work.Tokens <= 16 && m.work.DecodeTokens <= 256 {
			gaps = append(gaps, times[at])
		}
	}
	if len(gaps) == 0 {
		return nil
	}
	gap := median(gaps)
	launch := gap
	if f := &im.costs.Selected.Launch; f.Set() {
		launch = 1e3 * f.SI()
	}
	for at, t := range times {
		times[at] = max(t-gap+launch, launch)
	}
	before := len(im.costs.Fits)
	if err := im.grid(g, times, c, []string{"modules of DeepSeek-V3"}); err != nil {
		return err
	}
	im.costs.Fits = im.costs.Fits[:before] // judge whole modules instead
	made := &im.costs.Grids[len(im.costs.Grids)-1]
	made.Source += fmt.Sprintf("; modules less their linears and %.3g us between launches",
		1e3*(gap-launch))
	var off []Judged
	for i := range modules {
		m := &modules[i]
		if hw.KVType(m.model) != g.Type {
			continue
		}
		at := m.sizes()
		if inside, on := place(made, at); inside && !(on && m.model.WeightBytesEach == weightBytes) {
			off = append(off, Judged{float64(m.work.Tokens), m.seconds,
				m.linears + made.Seconds(at) + 1e-3*(gap-launch), true})
		}
	}
	im.judge("latents, "+part+" modules, KV of "+g.Type, len(times), off)
	return nil
}

// sizes returns a module's coordinates in its grid.
func (m *module) sizes() hw.Sizes {
	heads := float64(m.model.QHeads)
	if n := float64(m.work.Decodes); n > 0 {
		return hw.Sizes{n, float64(m.work.DecodeTokens) / n, heads}
	}
	return hw.Sizes{float64(m.work.Prefill[0].Query), float64(len(m.work.Prefill)), heads}
}
