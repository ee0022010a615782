package aic

import (
	"github.com/sparseserve/sparseserve/hw"
)

// attentionColumns are the columns of context_attention_perf and generation_attention_perf. In the
// first table isl is the length of each prompt. In the second each request decodes one token (isl
// is 1) with step tokens of context.
type attentionColumns struct {
	Batch   int64  `parquet:"batch_size"`
	Tokens  int64  `parquet:"isl"`
	Heads   int64  `parquet:"num_heads"`
	KVHeads int64  `parquet:"num_key_value_heads"`
	HeadDim int64  `parquet:"head_dim"`
	KV      string `parquet:"kv_cache_dtype"`
	Step    int64  `parquet:"step"`
}

// kvTypes maps the tables' names of KV types to the imported types.
var kvTypes = map[string]string{"bfloat16": "bf16", "fp8": "fp8"}

// headDim is the head size of the imported costs; other sizes are scaled by bytes and FLOPs.
const headDim = 128

// attention returns a table's rows by KV type, for full attention with heads of headDim.
func (im *importer) attention(operation string) (map[string][]row[attentionColumns], error) {
	rows, err := read[attentionColumns](im.tables, operation)
	if err != nil || rows == nil {
		return nil, err
	}
	windows, _ := read[struct { // tables of earlier versions have no windows
		Window int64 `parquet:"window_size"`
	}](im.tables, operation)
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

// Sizes of the decode attention grid.
var (
	decodeLists   = []int64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	decodeTokens  = []int64{2, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}
	decodeQueries = []int64{1, 2, 4, 8, 16}
)

// decode makes a grid of decode attention for each KV type.
func (im *importer) decode() error {
	return im.attentionGrids("generation_attention_perf", hw.Grid{Kernel: hw.GridDecode,
		Axes: []hw.Axis{axis("lists", decodeLists), axis("tokens", decodeTokens),
			axis("queries", decodeQueries)}},
		func(a *attentionColumns) []int64 {
			return []int64{a.Batch * a.KVHeads, a.Step + a.Tokens, a.Heads / a.KVHeads}
		})
}

// prefill makes a grid of prefill attention for each KV type.
func (im *importer) prefill() error {
	return im.attentionGrids("context_attention_perf", hw.Grid{Kernel: hw.GridPrefill,
		Axes: []hw.Axis{axis("tokens", prefillTokens), axis("prompts", prefillBatch),
			axis("kv_heads", prefillHeads), axis("queries", decodeQueries)}},
		func(a *attentionColumns) []int64 {
			if a.Batch*a.Tokens > 131072 {
				return nil
			}
			return []int64{a.Tokens, a.Batch, a.KVHeads, a.Heads / a.KVHeads}
		})
}

// attentionGrids makes a grid for each KV type of the table. The same lists in fewer requests take
// less time, and models have many KV heads, so it takes the shortest time.
func (im *importer) attentionGrids(operation string, g hw.Grid,
	sizes func(*attentionColumns) []int64) error {
	byType, err := im.attention(operation)
	if err != nil {
		return err
	}
	if byType == nil {
		im.missing(operation, g.Kernel+" is that of "+im.base.Name)
	}
	for _, g.Type = range []string{"bf16", "fp8"} {
		rows, times := byType[g.Type], map[hw.Sizes]float64{}
		for _, r := range rows {
			var at hw.Sizes
			for i, v := range sizes(&r.of) {
				at[i] = float64(v)
			}
			if t, ok := times[at]; at[0] > 0 && (!ok || r.Latency < t) {
				times[at] = r.Latency
			}
		}
		if len(times) == 0 {
			continue
		}
		if g.Kernel == hw.GridDecode {
			im.fromHBM(&g, times, func(at hw.Sizes) float64 {
				return at[0] * at[1] * 2 * headDim * hw.WeightBytes(g.Type) // keys and values
			})
		}
		if err := im.grid(g, times, rows[0].common, kernelsOf(rows)); err != nil {
			return err
		}
	}
	return nil
}

// Sizes of the prefill attention grid. Prompts of one length form a batch of at most 131,072
// tokens, because a server's steps have no more.
var (
	prefillTokens = []int64{16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	prefillBatch  = []int64{1, 2, 8, 32, 128}
	prefillHeads  = []int64{1, 2, 4, 8, 64}
)
