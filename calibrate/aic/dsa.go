package aic

import (
	"fmt"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// moduleColumns are the columns of tables that time a whole attention module, including its
// projections.
type moduleColumns struct {
	Operation string `parquet:"op_name"`
	Model     string `parquet:"model"`
	KV        string `parquet:"kv_cache_dtype"`
	Weights   string `parquet:"gemm_type"`
	Heads     int64  `parquet:"num_heads"` // per rank
	Batch     int64  `parquet:"batch_size"`
	Tokens    int64  `parquet:"isl"`
	Step      int64  `parquet:"step"`
}

// module is one measured attention module, with its work for the cost model.
type module struct {
	model   *hw.Model
	work    sim.Work
	linears float64 // s
	seconds float64
}

// Limits of imported modules. In shorter ones the host launches slower than the GPU computes, and a
// server's steps do not prefill more tokens.
const (
	leastPrefill   = 2.5e-3 // s
	mostPrefill    = 32768  // tokens of a batch
	mostModules    = 1 << 10
	decodesInGraph = 256 // SGLang launches larger batches without a graph
)

// modelsOf maps the tables' model names to built-in models.
var modelsOf = map[string]string{"deepseek-ai/DeepSeek-V3.2": "deepseek-v3.2",
	"zai-org/GLM-5": "glm-5", "zai-org/GLM-5-FP8": "glm-5", "deepseek-ai/DeepSeek-V3": "deepseek-v3"}

// selected fits the kernels of layers with an indexer to half of the modules.
func (im *importer) selected() error {
	p, err := im.costs.On(im.card)
	if err != nil {
		return err
	}
	prefill, c, err := im.modules(p, "dsa_context_module_perf", "vllm")
	if err != nil {
		return err
	}
	decode, _, err := im.modules(p, "dsa_generation_module_perf", "vllm")
	if err != nil {
		return err
	}
	if len(prefill) == 0 || len(decode) == 0 {
		im.missing("dsa_context_module_perf or dsa_generation_module_perf",
			"attention over an indexer's selection is derived from dense kernels")
		return nil
	}
	if p.GPU.PeakFP8.SI() == 0 {
		return fmt.Errorf("tables: %s: modules of sparse attention on a card without FP8 peak, which "+
			"the indexer's scores need", im.tables.dir)
	}
	f := &p.Selected
	peak, hbm := p.GPU.PeakFP16.SI(), p.GPU.HBMBandwidth.SI()
	figures := []struct { // start of the search; figures of decode come first
		of           *hw.Figure
		unit         string
		scale, start float64
	}{{&f.Launch, "us", 1e-6, 90e-6}, {&f.Keys, "GB/s", 1e9, 0.6 * hbm}, {&f.Query, "us", 1e-6, 1e-6},
		{&f.Row, "ns", 1e-9, 35e-9}, {&f.Token, "us", 1e-6, 0.1e-6}, {&f.Wave, "us", 1e-6, 20e-6},
		{&f.Rate, "TFLOP/s", 1e12, 0.6 * peak}, {&f.Logits, "TFLOP/s", 1e12, 0.6 * peak}}
	take := func(figure int, by float64) { // scale a figure so that its time is by times the start's
		to := figures[figure]
		if to.scale > 1 { // a rate
			by = 1 / by
		}
		*to.of = hw.Figure{Value: to.start * by / to.scale, Unit: to.unit, From: hw.Imported,
			Source: "fit"}
		f.IndexLaunch = f.Launch
		f.IndexLaunch.Value *= 0.37
	}
	for i := range figures {
		take(i, 1)
	}
	search := func(rows []module, first, end int) {
		terms, fixed := make([][]float64, len(rows)), make([]float64, len(rows))
		for i := range rows {
			before := rows[i].price(p)
			rest := rows[i].seconds - before // unexplained time
			for j := first; j < end; j++ {
				take(j, 2)
				terms[i] = append(terms[i], rows[i].price(p)-before)
				take(j, 1)
			}
			fixed[i] = 1 - (rest+floats.Sum(terms[i]))/rows[i].seconds
			floats.Scale(1/rows[i].seconds, terms[i])
		}
		for j, x := range leastSquares(fixed, terms, nil) {
			take(first+j, x)
		}
	}
	search(decode, 0, 4)
	search(prefill, 4, len(figures))
	judge := func(name string, rows []module) {
		var off []Judged
		for i := range rows {
			m := &rows[i]
			off = append(off, Judged{float64(m.work.Tokens), m.seconds, m.price(p), i%2 == 1})
		}
		im.judge(name, len(rows), off)
	}
	judge("selected, prefill modules", prefill)
	judge("selected, decode modules", decode)
	if err := im.launches(p); err != nil {
		return err
	}
	why := source(c, []string{"modules of DeepSeek-V3.2 and GLM-5"}, "; fitted to half of them")
	for _, of := range []*hw.Figure{&f.Token, &f.Wave, &f.Rate, &f.Logits, &f.Launch, &f.IndexLaunch,
		&f.Keys, &f.Query, &f.Row} {
		of.Value = round(of.Value)
		if of.Source == "fit" {
			of.Source, why = why, "of the same fit"
		}
	}
	im.costs.Selected = *f
	return nil
}

func (m *module) price(p *hw.Profile) float64 {
	return m.linears + p.SelectedSeconds(m.model, &m.work)
}

// launches imports the small kernels of a decode layer from SGLang's modules, which run fused in
// CUDA graphs, or from the base. vLLM's modules were measured without the fusion of its server.
func (im *importer) launches(p *hw.Profile) error {
	f := &p.Selected
	rows, c, err := im.modules(p, "dsa_generation_module_perf", "sglang")
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		if im.base.Selected.Launch.Set() {
			f.Launch, f.IndexLaunch = im.base.Selected.Launch, im.base.Selected.IndexLaunch
		}
		return nil
	}
	var rest []float64
	for i := range rows {
		r := &rows[i]
		if r.work.Decodes == 1 && r.work.DecodeTokens <= r.work.BoundedTokens {
			rest = append(rest, r.seconds-(r.price(p)-f.Launch.SI()-f.IndexLaunch.SI()))
		}
	}
	if len(rest) == 0 {
		return nil
	}
	all := 1e6 * median(rest)
	why := source(c, []string{"modules of one request"}, "; the rest beside linears and attention, "+
		"of which an indexer's kernels are 0.37, the difference to modules without one")
	f.Launch = hw.Figure{Value: all * (1 - 0.37), Unit: "us", From: hw.Imported, Source: why}
	f.IndexLaunch = hw.Figure{Value: all * 0.37, Unit: "us", From: hw.Imported, Source: why}
	return nil
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
		heads              int64
	}
	models := map[of]*hw.Model{}
	type linear struct {
		model  *hw.Model
		tokens int64
	}
	linears := map[linear]float64{}
	stride, indexed := 1, strings.HasPrefix(operation, "dsa")
	if indexed {
		stride = len(rows)/(4*mostModules) + 1
	}
	for i := 0; i < len(rows); i += stride {
		r := &rows[i]
		name, known := modelsOf[r.of.Model]
		kind, kv := gemmTypes[r.of.Weights], kvTypes[r.of.KV]
		q := r.of.Batch * r.of.Tokens
		decode := strings.Contains(operation, "generation")
		switch {
		case !known || kv == "" || kind != "bf16" && kind != "fp8_block" ||
			strings.Contains(r.of.Operation, "skip") || strings.Contains(r.Kernel, "dense"):
			im.skip("modules of " + r.of.Model + " with weights of " + r.of.Weights)
			continue
		case r.of.Heads < 1 || r.of.Batch < 1 || r.of.Tokens < 1 || r.of.Step < 0 ||
			decode && r.of.Step < 1:
			return nil, common{}, im.fault(operation, r.line, "want heads, a batch and tokens of 1 or more")
		case !decode && (indexed && r.Latency*1e-3 < leastPrefill || q > mostPrefill),
			decode && indexed && r.of.Batch > decodesInGraph:
			continue
		}
		key := of{name, kind, kv, r.of.Heads}
		if models[key] == nil {
			m, err := hw.LoadModel(name)
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
			context := r.of.Step
			m.work.Decodes = int(r.of.Batch)
			m.work.DecodeTokens = r.of.Batch * context
			m.work.BoundedTokens = r.of.Batch * min(context, int64(m.model.IndexTopK))
		} else {
			for range r.of.Batch {
				m.work.Prefill = append(m.work.Prefill, sim.Span{Query: int(r.of.Tokens),
					Prefix: int(r.of.Step)})
			}
		}
		at := linear{m.model, q}
		if _, ok := linears[at]; !ok {
			linears[at] = p.ModuleLinears(m.model, int(q))
		}
		m.linears = linears[at]
		out = append(out, m)
	}
	return out, rows[0].common, nil
}
