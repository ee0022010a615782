package aic

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// attentionColumns are the columns of context_attention_perf and generation_attention_perf. In the
// first table isl is the length of each prompt. In the second each request decodes one token (isl
// is 1) and has step tokens of context.
type attentionColumns struct {
	Batch   int64  `parquet:"batch_size"`
	Tokens  int64  `parquet:"isl"`
	Heads   int64  `parquet:"num_heads"`
	KVHeads int64  `parquet:"num_key_value_heads"`
	HeadDim int64  `parquet:"head_dim"`
	KV      string `parquet:"kv_cache_dtype"`
	Step    int64  `parquet:"step"`
}

// kvTypes are the types of KV that are taken, by the tables' names.
var kvTypes = map[string]string{"bfloat16": "bf16", "fp8": "fp8"}

// headDim is the size of heads that costs are made of; others are scaled by their bytes and FLOPs.
const headDim = 128

// attention returns the rows of a table by type of KV, of full attention with heads of headDim.
func (im *importer) attention(operation string) (map[string][]row[attentionColumns], error) {
	rows, err := read[attentionColumns](im.tables, operation)
	if err != nil || rows == nil {
		return nil, err
	}
	windows, err := read[windowColumn](im.tables, operation)
	if err != nil { // tables of earlier versions have no windows
		windows = nil
	}
	byType := map[string][]row[attentionColumns]{}
	for i, r := range rows {
		a := &r.of
		kind, known := kvTypes[a.KV]
		switch {
		case a.Batch < 1 || a.Tokens < 1 || a.Heads < 1 || a.KVHeads < 1 || a.HeadDim < 1 || a.Step < 0:
			return nil, im.fault(operation, r.line, "want a batch, tokens and heads of 1 or more")
		case !known:
			im.skip("attention to KV of " + a.KV)
		case windows != nil && windows[i].of.Window > 0:
			im.skip("attention with a window (priced as full attention of its tokens)")
		case a.HeadDim != headDim:
			im.skip("attention of heads of other sizes than 128 (priced by their bytes and FLOPs)")
		case a.Heads%a.KVHeads != 0:
			im.skip("attention of query heads that KV heads do not divide")
		default:
			byType[kind] = append(byType[kind], r)
		}
	}
	return byType, nil
}

type windowColumn struct {
	Window int64 `parquet:"window_size"`
}

// Sizes of the grid of decode attention.
var (
	decodeLists   = []int64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	decodeTokens  = []int64{2, 128, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}
	decodeQueries = []int64{1, 2, 4, 8, 16}
)

// decode makes a grid of decode attention for each type of KV.
func (im *importer) decode() error {
	const operation = "generation_attention_perf"
	byType, err := im.attention(operation)
	if err != nil {
		return err
	}
	if byType == nil {
		im.missing(operation, "decode attention is that of "+im.base.Name)
	}
	for _, kind := range []string{"bf16", "fp8"} {
		rows := byType[kind]
		if len(rows) == 0 {
			continue
		}
		times := map[hw.Sizes]float64{}
		for _, r := range rows { // the same lists in fewer requests take less: models have many KV heads
			at := hw.Sizes{float64(r.of.Batch * r.of.KVHeads), float64(r.of.Step + r.of.Tokens),
				float64(r.of.Heads / r.of.KVHeads)}
			if t, ok := times[at]; !ok || r.Latency < t {
				times[at] = r.Latency
			}
		}
		g := hw.Grid{Kernel: hw.GridDecode, Type: kind, Axes: []hw.Axis{axis("lists", decodeLists),
			axis("tokens", decodeTokens), axis("queries", decodeQueries)}}
		if err := im.grid(g, times, rows[0].common, kernelsOf(rows)); err != nil {
			return err
		}
	}
	return nil
}

// Sizes of the grid of prefill attention. Prompts of one length are a batch of at most mostPrompts
// tokens, because no step of a server has more.
var (
	prefillTokens = []int64{16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	prefillBatch  = []int64{1, 2, 8, 32, 128}
	prefillHeads  = []int64{1, 2, 4, 8, 64}
)

const mostPrompts = 131072

// prefill makes a grid of prefill attention for each type of KV.
func (im *importer) prefill() error {
	const operation = "context_attention_perf"
	byType, err := im.attention(operation)
	if err != nil {
		return err
	}
	if byType == nil {
		im.missing(operation, "prefill attention is that of "+im.base.Name)
	}
	for _, kind := range []string{"bf16", "fp8"} {
		rows := byType[kind]
		times := map[hw.Sizes]float64{}
		for _, r := range rows {
			if r.of.Batch*r.of.Tokens <= mostPrompts {
				times[hw.Sizes{float64(r.of.Tokens), float64(r.of.Batch), float64(r.of.KVHeads),
					float64(r.of.Heads / r.of.KVHeads)}] = r.Latency
			}
		}
		if len(times) == 0 {
			continue
		}
		g := hw.Grid{Kernel: hw.GridPrefill, Type: kind, Axes: []hw.Axis{axis("tokens", prefillTokens),
			axis("prompts", prefillBatch), axis("kv_heads", prefillHeads),
			axis("queries", decodeQueries)}}
		if err := im.grid(g, times, rows[0].common, kernelsOf(rows)); err != nil {
			return err
		}
		if kind == "bf16" {
			im.fastestPrompts(rows)
		}
	}
	return nil
}

// fastestPrompts writes the highest rate of prompts and their shortest time, which costs have that
// no table has.
func (im *importer) fastestPrompts(rows []row[attentionColumns]) {
	rate, launch := 0.0, math.Inf(1)
	for _, r := range rows {
		a := &r.of
		flops := 2 * headDim * float64(a.Batch*a.Heads) * float64(a.Tokens) * float64(a.Tokens)
		rate, launch = max(rate, flops/(r.Latency*1e-3)), min(launch, r.Latency)
	}
	figure := func(v float64, unit, what string) hw.Figure {
		return hw.Figure{Value: round(v), Unit: unit, From: hw.Imported,
			Source: source(rows[0].common, kernelsOf(rows), "; "+what)}
	}
	im.costs.Paged = im.paged
	im.costs.Prefill = []hw.PrefillRow{{Query: int(prefillTokens[0]),
		Launch: figure(launch*1e3, "us", "the shortest time"),
		Rate:   figure(min(rate, im.card.GPU.PeakFP16.SI())/1e12, "TFLOP/s", "the highest rate")}}
}
