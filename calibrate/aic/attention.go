package aic

import (
	"fmt"
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
		times := map[[3]float64]float64{}
		for _, r := range rows { // the same lists in fewer requests take less: models have many KV heads
			at := [3]float64{float64(r.of.Batch * r.of.KVHeads), float64(r.of.Step + r.of.Tokens),
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

// queryTile is the queries of a CTA: of a diagonal tile half of the pairs count.
const queryTile = 128

// prefillCost is prefill attention without a prefix:
//
//	t = launch + max((FLOPs + w diagonal) / rate, longest CTA) + bytes / stream
type prefillCost struct{ launch, rate, stream, diagonal float64 }

func (c *prefillCost) seconds(a *attentionColumns, ctas float64) float64 {
	q, heads := float64(a.Tokens), float64(a.Batch*a.Heads)
	pairs := q * q / 2
	flops := 4 * headDim * heads * (pairs + c.diagonal*q*queryTile/2)
	longest := 4 * headDim * math.Min(q, queryTile) * q * ctas
	bytes := q * float64(a.Batch) * headDim * (4*float64(a.Heads) + 4*float64(a.KVHeads))
	return c.launch + max(flops, longest)/c.rate + bytes/c.stream
}

// prefill fits prefill attention for each type of KV, to half of the points.
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
		if rows := byType[kind]; len(rows) > 0 {
			if err := im.fitPrefill(kind, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// prefillQueries are the chunks that have a row.
var prefillQueries = []int{16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}

func (im *importer) fitPrefill(kind string, rows []row[attentionColumns]) error {
	ctas := im.paged.CTAs.SI()
	var taken []row[attentionColumns]
	for _, r := range rows {
		if r.of.Tokens >= 16 && r.of.Batch*r.of.Tokens <= 131072 { // else no step of a server
			taken = append(taken, r)
		}
	}
	if len(taken) < 40 {
		return fmt.Errorf("tables: %s: %d points of prefill attention with KV of %s and heads of %d: "+
			"want 40 or more", im.tables.dir, len(taken), kind, headDim)
	}
	cost := func(f []float64) prefillCost { return prefillCost{f[0], f[1], f[2], f[3]} }
	peak, hbm := im.card.GPU.PeakFP16.SI(), im.card.GPU.HBMBandwidth.SI()
	c := cost(fit([]float64{10e-6, 0.6 * peak, 0.5 * hbm, 1}, len(taken),
		func(f []float64, i int) float64 { c := cost(f); return c.seconds(&taken[i].of, ctas) },
		func(i int) float64 { return taken[i].Latency * 1e-3 }))
	var off []Judged
	for i := range taken {
		a := &taken[i].of
		off = append(off, judged(float64(a.Batch*a.Tokens*a.Heads), taken[i].Latency*1e-3,
			c.seconds(a, ctas), i%2 == 1))
	}
	im.title(rows[0].common)
	im.judge("prefill_attention of "+kind, len(rows), off)
	im.setPrefill(kind, c, source(rows[0].common, kernelsOf(rows),
		"; fitted to half of the points: launch, rate, bytes besides, and what a diagonal tile wastes"))
	return nil
}

// setPrefill writes a fit as rows. What a diagonal tile wastes is a smaller rate of short chunks.
func (im *importer) setPrefill(kind string, c prefillCost, source string) {
	figure := func(v float64, unit string) hw.Figure {
		return hw.Figure{Value: round(v), Unit: unit, From: hw.Imported, Source: source}
	}
	rate := min(c.rate, im.card.GPU.PeakFP16.SI())
	stream := figure(c.stream/1e9, "GB/s")
	for i, q := range prefillQueries {
		if i == 1 { // one row has it in full
			source = "as the launch of 16 tokens"
		}
		r := hw.PrefillRow{Query: q, Launch: figure(c.launch*1e6, "us"),
			Rate: figure(rate/(1+c.diagonal*queryTile/float64(q))/1e12, "TFLOP/s")}
		if kind == "fp8" {
			r.KV = kind
		}
		im.costs.Prefill = append(im.costs.Prefill, r)
	}
	if kind == "bf16" {
		im.costs.Paged = im.paged
		im.costs.Paged.Stream = stream
	}
}
