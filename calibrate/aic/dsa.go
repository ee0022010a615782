package aic

import (
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim"
)

// moduleColumns are the columns of tables that time a whole attention module, including its
// projections.
type moduleColumns struct {
	Operation string `parquet:"op_name"`
	Model     string `parquet:"model"`
	KV        string `parquet:"kv_cache_dtype"`
	Weights   string `parquet:"gemm_type"`
	Computes  string `parquet:"mla_dtype"`
	Heads     int64  `parquet:"num_heads"` // per rank
	Batch     int64  `parquet:"batch_size"`
	Tokens    int64  `parquet:"isl"`
	Step      int64  `parquet:"step"`
}

// module is one measured attention module, with its work for the cost model.
type module struct {
	model   *llm.Model
	work    sim.Work
	linears float64 // s
	seconds float64
}

// Limits of imported modules. In shorter ones the host launches slower than the GPU computes, and a
// server's steps do not prefill more tokens.
const (
	leastPrefill   = 2.5e-3 // s
	mostPrefill    = 32768  // tokens of a batch
	decodesInGraph = 256    // SGLang launches larger batches without a graph
)

// modelsOf maps the tables' model names to built-in models.
var modelsOf = map[string]string{"deepseek-ai/DeepSeek-V3.2": "deepseek-v3.2",
	"zai-org/GLM-5": "glm-5", "zai-org/GLM-5-FP8": "glm-5", "deepseek-ai/DeepSeek-V3": "deepseek-v3"}

// Sizes of the grids of selected latents.
var (
	selectedPrompts  = []int64{128, 512, 1024, 2048, 4096, 8192, 16384, 32768}
	selectedRequests = []int64{1, 4, 16, 64, 256, 1024}
	selectedTokens   = []int64{16, 512, 1024, 2048, 8192, 32768, 131072}
	selectedIndexes  = []int64{32, 64}
)

// selected makes grids for layers with an indexer from whole modules, without their linears.
func (im *importer) selected() error {
	p, prefill, decode, c, err := im.prefillAndDecode("dsa")
	if err != nil || len(prefill) == 0 {
		return err
	}
	for _, kv := range []string{"bf16", "fp8"} {
		decodes, gap := restOf(kv, decode)
		if len(decodes) == 0 {
			continue
		}
		for at, t := range decodes {
			decodes[at] = max(t-1e3*gap, 1e-5)
		}
		g := hw.Grid{Kernel: hw.GridSelectedPrefill, Type: kv, Axes: []hw.Axis{
			axis("tokens", selectedPrompts), axis("index_heads", selectedIndexes),
			axis("heads", latentHeads)}}
		prompts, used := promptTimes(&g, prefill)
		if err := im.moduleGrid(g, prompts, c, "DeepSeek-V3.2 and GLM-5"); err != nil {
			return err
		}
		g = selectedGrid(kv)
		if err := im.moduleGrid(g, decodes, c, "DeepSeek-V3.2 and GLM-5"); err != nil {
			return err
		}
		p.Grids, p.Selected = im.costs.Grids, hw.Selected{}
		im.judgeModules("selected, prefill", kv, len(prompts), prefill,
			func(m *module) (seconds float64, inside, seen bool) {
				inside = m.model.QHeads >= int(latentHeads[0])
				return m.price(p), inside, used[m]
			})
		im.judgeModules("selected, decode", kv, len(decodes), decode,
			func(m *module) (seconds float64, inside, seen bool) {
				inside, on := place(&g, m.sizes())
				return m.price(p) + gap, inside, on && m.model.WeightBytesEach == 2
			})
	}
	return im.launches(p)
}

// promptTimes returns the time per token of prompts without a prefix, in ms, and the modules used:
// the largest batch of each size, which has the least share of time between launches.
func promptTimes(g *hw.Grid, modules []module) (map[hw.Sizes]float64, map[*module]bool) {
	largest := map[hw.Sizes]*module{}
	for i := range modules {
		m := &modules[i]
		if m.model.KVType() != g.Type || m.model.WeightBytesEach != 1 ||
			m.work.Prefill[0].Prefix > 0 {
			continue
		}
		at := m.sizes()
		if l := largest[at]; l == nil || l.work.Tokens < m.work.Tokens {
			largest[at] = m
		}
	}
	times, used := map[hw.Sizes]float64{}, map[*module]bool{}
	for at, m := range largest {
		times[at] = 1e3 * (m.seconds - m.linears) / float64(m.work.Tokens)
		_, used[m] = place(g, at)
	}
	return times, used
}

func (m *module) price(p *hw.Profile) float64 {
	return m.linears + cost.SelectedSeconds(p, m.model, &m.work)
}

// launches imports the small kernels of a decode layer from SGLang's modules, which run fused in
// CUDA graphs, or from the base, and adds them to the grids of decodes. vLLM's modules were
// measured without the fusion of its server.
func (im *importer) launches(p *hw.Profile) error {
	f := &im.costs.Selected
	*f = im.base.Selected
	rows, c, err := im.modules(p, "dsa_generation_module_perf", "sglang")
	if err != nil {
		return err
	}
	var rest []float64
	for i := range rows {
		r := &rows[i]
		if r.work.Decodes == 1 && r.work.DecodeTokens <= r.work.BoundedTokens {
			rest = append(rest, r.seconds-r.price(p))
		}
	}
	if len(rest) > 0 {
		all := 1e6 * median(rest)
		why := source(c, []string{"modules of one request"}, "; the rest beside linears and "+
			"attention, of which an indexer's kernels are 0.37, the difference to modules without one")
		f.Launch = hw.Figure{Value: round(all * (1 - 0.37)), Unit: "us", From: hw.Imported, Source: why}
		f.IndexLaunch = f.Launch
		f.IndexLaunch.Value = round(all * 0.37)
	}
	for i := range im.costs.Grids {
		for j, t := range im.costs.Grids[i].Times {
			if g := &im.costs.Grids[i]; g.Kernel == hw.GridSelected {
				g.Times[j] = stats.Significant(t+f.Launch.Value+f.IndexLaunch.Value, gridDigits)
			}
		}
	}
	return im.fusedDecodes(rows, c)
}

// fusedDecodes makes grids of SGLang's own decodes, whose kernels differ from vLLM's: its modules
// with FP8 weights, less their linears.
func (im *importer) fusedDecodes(rows []module, c common) error {
	for _, kv := range []string{"bf16", "fp8"} {
		g := selectedGrid(kv)
		g.Program = "sglang"
		times := map[hw.Sizes]float64{}
		for i := range rows {
			if m := &rows[i]; m.model.KVType() == kv && m.model.WeightBytesEach == 1 {
				times[m.sizes()] = max(1e3*(m.seconds-m.linears), 1e-5)
			}
		}
		if len(times) == 0 {
			continue
		}
		if err := im.moduleGrid(g, times, c, "DeepSeek-V3.2 and GLM-5"); err != nil {
			return err
		}
		made := &im.costs.Grids[len(im.costs.Grids)-1]
		im.judgeModules("selected, SGLang's decode", kv, len(times), rows,
			func(m *module) (seconds float64, inside, seen bool) {
				inside, on := place(made, m.sizes())
				return m.linears + cost.GridSeconds(made, m.sizes()), inside,
					on && m.model.WeightBytesEach == 1
			})
	}
	return nil
}

func selectedGrid(kv string) hw.Grid {
	return hw.Grid{Kernel: hw.GridSelected, Type: kv, Axes: []hw.Axis{
		axis("requests", selectedRequests), axis("tokens", selectedTokens),
		axis("index_heads", selectedIndexes), axis("heads", latentHeads)}}
}

// modules returns the rows of an engine's table, with the times of their linears from the imported
// GEMMs.
func (im *importer) modules(p *hw.Profile, operation, engine string) ([]module, common, error) {
	rows, err := readOf[moduleColumns](im.tables, operation, engine)
	if err != nil || len(rows) == 0 {
		return nil, common{}, err
	}
	var out []module
	type of struct {
		model, weights, kv string
		heads, tokens      int64
	}
	models, linears := map[of]*llm.Model{}, map[of]float64{}
	indexed := strings.HasPrefix(operation, "dsa")
	for i := range rows {
		r := &rows[i]
		name, known := modelsOf[r.of.Model]
		kind, kv := gemmTypes[r.of.Weights], kvTypes[r.of.KV]
		q := r.of.Batch * r.of.Tokens
		decode := strings.Contains(operation, "generation")
		switch {
		case !known || kv == "" || kind != "bf16" && kind != "fp8_block" ||
			r.of.Computes != "bfloat16" || strings.Contains(r.of.Operation, "skip") ||
			strings.Contains(r.Kernel, "dense"):
			im.skip("modules of " + r.of.Model + " with weights of " + r.of.Weights)
			continue
		case r.of.Heads < 1 || r.of.Batch < 1 || r.of.Tokens < 1 || r.of.Step < 0 ||
			decode && r.of.Step < 1:
			return nil, common{}, im.fault(operation, r.line, "want heads, a batch and tokens of 1 or more")
		case !decode && (indexed && r.Latency*1e-3 < leastPrefill || q > mostPrefill),
			engine == "sglang" && r.of.Batch > decodesInGraph:
			continue
		}
		key := of{name, kind, kv, r.of.Heads, 0}
		if models[key] == nil {
			m, err := llm.Load(name)
			if err != nil {
				return nil, common{}, err
			}
			m.QHeads, m.WeightBytesEach, m.WeightBlock, m.KVBytesEach = int(r.of.Heads), 2, 0, 2
			if kind == "fp8_block" {
				m.WeightBytesEach, m.WeightBlock = 1, 128
			}
			if kv == "fp8" {
				m.KVBytesEach = 1
			}
			models[key] = &m
		}
		m := module{model: models[key], seconds: r.Latency * 1e-3}
		m.work.Tokens = int(q)
		if decode {
			m.work.Decodes, m.work.DecodeTokens = int(r.of.Batch), r.of.Batch*r.of.Step
			m.work.BoundedTokens = r.of.Batch * min(r.of.Step, int64(m.model.IndexTopK))
		} else {
			for range r.of.Batch {
				m.work.Prefill = append(m.work.Prefill, sim.Span{Query: int(r.of.Tokens),
					Prefix: int(r.of.Step)})
			}
		}
		key.tokens = q
		if _, ok := linears[key]; !ok {
			linears[key] = cost.ModuleLinears(p, m.model, int(q))
		}
		m.linears = linears[key]
		out = append(out, m)
	}
	return out, rows[0].common, nil
}
