package latent

import (
	"math"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
)

// scratch is the device memory that a step works in, fp16 [tokens][..] unless noted. It grows to
// the largest step so far.
type scratch struct {
	x, h               mem.Buffer // residual stream, and its normed input or a linear's output
	c, cn, q           mem.Buffer // the query's latent, normed, and the queries
	kv, key            mem.Buffer // as projected
	indexQ, weight     mem.Buffer
	scores             mem.Buffer // fp32 [slice][context]
	list, count        mem.Buffer // int32 [tokens][TopK], [tokens]
	latent, sum, value mem.Buffer // queries and outputs in the latents' space, and out of it
	gateUp, act        mem.Buffer
	logits, picked     mem.Buffer // [sampled][Vocab], int32
	fresh, slot        mem.Buffer // of decodes: new rows, int32 [decodes][TopK]
	misses             mem.Buffer // int32 [layers][decodes]
}

// scoreSlice is the number of rows that are scored and ranked together. It bounds the memory of
// scores.
const scoreSlice = 256

// size grows the scratch for the step.
func (d *Device) size() {
	b, s, r := &d.scratch, &d.shape, &d.rows
	n := r.tokens
	for _, g := range []struct {
		b      *mem.Buffer
		values int
		what   string
	}{
		{&b.x, n * s.Hidden, "hidden state"}, {&b.h, n * s.Hidden, "normed state"},
		{&b.c, n * s.QRank, "queries' latents"}, {&b.cn, n * s.QRank, "queries' latents"},
		{&b.q, n * s.Heads * s.head(), "queries"}, {&b.kv, n * s.width(), "latents"},
		{&b.key, n * s.IndexDim, "keys"}, {&b.indexQ, n * s.IndexHeads * s.IndexDim, "queries"},
		{&b.weight, n * s.IndexHeads, "weights of the indexer's heads"},
		{&b.scores, 2 * min(n, scoreSlice) * r.most, "scores"},
		{&b.list, 2 * n * s.TopK, "selected tokens"}, {&b.count, 2 * n, "selected tokens"},
		{&b.latent, n * s.Heads * s.Rank, "queries"}, {&b.sum, n * s.Heads * s.Rank, "attention"},
		{&b.value, n * s.Heads * s.Value, "attention"},
		{&b.gateUp, 2 * n * s.FFN, "gate and up"}, {&b.act, n * s.FFN, "activation"},
		{&b.logits, r.sampled * s.Vocab, "logits"}, {&b.picked, 2 * r.sampled, "tokens"},
		{&b.fresh, r.decodes * s.width(), "new rows"}, {&b.slot, 2 * r.decodes * s.TopK, "slots"},
		{&b.misses, 2 * s.Layers * r.decodes, "misses"},
	} {
		d.grow(g.b, 2*g.values, g.what)
	}
}

func (d *Device) linear(x, w, y cuda.Ptr, tokens, in, out int) {
	d.launch(&cuda.LinearArgs{X: x, W: w, Y: y, Tokens: int32(tokens), In: int32(in),
		Out: int32(out)})
}

// layer runs one layer of the batch.
func (d *Device) layer(layer int) {
	b, s, r, w := &d.scratch, &d.shape, &d.rows, &d.model.tensors[layer]
	if layer == 0 {
		d.launch(&cuda.EmbedArgs{Table: w[embed], Token: r.ids, Out: b.x.At, Tokens: int32(r.tokens),
			Hidden: int32(s.Hidden)},
			&cuda.RMSNormArgs{X: b.x.At, Weight: w[attnNorm], Out: b.h.At, Rows: int32(r.tokens),
				Hidden: int32(s.Hidden), Eps: eps})
	}
	d.project(layer)
	d.selects(layer)
	d.attend(layer)
	d.linear(b.value.At, w[out], b.h.At, r.tokens, s.Heads*s.Value, s.Hidden)
	d.addNorm(w[mlpNorm])
	d.linear(b.h.At, w[gateUp], b.gateUp.At, r.tokens, s.Hidden, 2*s.FFN)
	d.launch(&cuda.SiluMulArgs{X: b.gateUp.At, Out: b.act.At, Tokens: int32(r.tokens),
		FFN: int32(s.FFN)})
	d.linear(b.act.At, w[down], b.h.At, r.tokens, s.FFN, s.Hidden)
	next := d.model.tensors[0][norm]
	if layer+1 < s.Layers {
		next = d.model.tensors[layer+1][attnNorm]
	}
	d.addNorm(next)
	for i := range d.step.Rows {
		if row := &d.step.Rows[i]; d.slots > 0 && row.Emits && !row.Decode {
			d.settle(d.batch[i], layer, row.To)
		}
	}
}

// addNorm adds scratch.h to the residual stream and writes the sum's norm to it.
func (d *Device) addNorm(weight cuda.Ptr) {
	b := &d.scratch
	d.launch(&cuda.RMSNormArgs{X: b.h.At, Residual: b.x.At, Weight: weight, Out: b.h.At,
		Rows: int32(d.rows.tokens), Hidden: int32(d.shape.Hidden), Eps: eps})
}

// project computes queries, the indexer's queries, and the cached row and key of each token.
func (d *Device) project(layer int) {
	b, s, r, w := &d.scratch, &d.shape, &d.rows, &d.model.tensors[layer]
	n, at := r.tokens, &r.layers[layer]
	d.linear(b.h.At, w[qDown], b.c.At, n, s.Hidden, s.QRank)
	d.launch(&cuda.RMSNormArgs{X: b.c.At, Weight: w[qNorm], Out: b.cn.At, Rows: int32(n),
		Hidden: int32(s.QRank), Eps: eps})
	d.linear(b.cn.At, w[qUp], b.q.At, n, s.QRank, s.Heads*s.head())
	d.linear(b.cn.At, w[indexQ], b.indexQ.At, n, s.QRank, s.IndexHeads*s.IndexDim)
	d.linear(b.h.At, w[kvDown], b.kv.At, n, s.Hidden, s.width())
	d.linear(b.h.At, w[indexKey], b.key.At, n, s.Hidden, s.IndexDim)
	d.linear(b.h.At, w[indexWeight], b.weight.At, n, s.Hidden, s.IndexHeads)
	d.rotate(b.q.At+cuda.Ptr(2*s.Nope), s.Heads, s.head())
	d.rotate(b.indexQ.At, s.IndexHeads, s.IndexDim)
	d.launch(&cuda.LatentWriteArgs{Latent: b.kv.At, Key: b.key.At, Norm: w[kvNorm],
		KeyNorm: w[indexNorm], KeyBias: w[indexBias], Position: r.position, InvFreq: d.model.invFreq,
		RowTo: at.rowTo, KeyTo: at.keyTo, Tokens: int32(n), Rank: int32(s.Rank), Rope: int32(s.Rope),
		KeyDim: int32(s.IndexDim), Eps: eps})
}

func (d *Device) rotate(x cuda.Ptr, heads, stride int) {
	d.launch(&cuda.RotateArgs{X: x, Position: d.rows.position, InvFreq: d.model.invFreq,
		TokenStride: int64(heads * stride), HeadStride: int64(stride), Tokens: int32(d.rows.tokens),
		Heads: int32(heads), Dim: int32(d.shape.Rope)})
}

// selects scores the contexts of all rows and selects each row's best tokens.
func (d *Device) selects(layer int) {
	b, s, r := &d.scratch, &d.shape, &d.rows
	for from := 0; from < r.tokens; from += scoreSlice {
		n := min(scoreSlice, r.tokens-from)
		context := r.context + cuda.Ptr(4*from)
		d.launch(&cuda.IndexScoresArgs{Q: b.indexQ.At + cuda.Ptr(2*from*s.IndexHeads*s.IndexDim),
			Weight: b.weight.At + cuda.Ptr(2*from*s.IndexHeads),
			Key:    r.layers[layer].key + cuda.Ptr(8*from), Context: context, Scores: b.scores.At,
			Rows: int32(n), Heads: int32(s.IndexHeads), Dim: int32(s.IndexDim), Stride: int32(r.most),
			Scale: float32(1 / math.Sqrt(float64(s.IndexHeads*s.IndexDim)))},
			&cuda.TopKArgs{Scores: b.scores.At, Blocks: context,
				List: b.list.At + cuda.Ptr(4*from*s.TopK), Count: b.count.At + cuda.Ptr(4*from),
				Units: int32(n), ScoreStride: int32(r.most), ListStride: int32(s.TopK), K: int32(s.TopK)})
	}
}

// attend loads the buffers' misses to HBM and attends to the selection.
func (d *Device) attend(layer int) {
	b, s, r, w := &d.scratch, &d.shape, &d.rows, &d.model.tensors[layer]
	d.launch(&cuda.HeadLinearArgs{X: b.q.At, W: w[keyUp], Y: b.latent.At,
		XToken: int64(s.Heads * s.head()), XHead: int64(s.head()), Tokens: int32(r.tokens),
		Heads: int32(s.Heads), In: int32(s.Nope), Out: int32(s.Rank)})
	own := 0 // rows whose lists are tokens
	if d.slots > 0 && r.decodes > 0 {
		own = r.decodes
		d.swap(layer)
		d.attention(layer, b.slot.At, 0, own)
	}
	d.attention(layer, b.list.At, own, r.tokens)
	d.launch(&cuda.HeadLinearArgs{X: b.sum.At, W: w[valueUp], Y: b.value.At,
		XToken: int64(s.Heads * s.Rank), XHead: int64(s.Rank), Tokens: int32(r.tokens),
		Heads: int32(s.Heads), In: int32(s.Rank), Out: int32(s.Value)})
	d.show(layer)
}

// attention runs the attention of rows [from, to) to their lists.
func (d *Device) attention(layer int, lists cuda.Ptr, from, to int) {
	b, s, r := &d.scratch, &d.shape, &d.rows
	query, latent := s.Heads*s.head(), cuda.Ptr(2*from*s.Heads*s.Rank)
	d.launch(&cuda.LatentAttendArgs{Q: b.latent.At + latent,
		QRope: b.q.At + cuda.Ptr(2*(from*query+s.Nope)), KV: r.layers[layer].kv + cuda.Ptr(8*from),
		List: lists + cuda.Ptr(4*from*s.TopK), Count: b.count.At + cuda.Ptr(4*from),
		Out: b.sum.At + latent, RopeRow: int64(query), RopeHead: int64(s.head()),
		Rows:  int32(to - from),
		Heads: int32(s.Heads), Rank: int32(s.Rank), Rope: int32(s.Rope), Stride: int32(s.TopK),
		Scale: float32(1 / math.Sqrt(float64(s.head())))})
}

// swap looks up the decodes' selected tokens in their buffers, and loads the misses.
func (d *Device) swap(layer int) {
	b, s, r := &d.scratch, &d.shape, &d.rows
	d.launch(&cuda.SwapInArgs{List: b.list.At, Count: b.count.At, Context: r.context, Page: r.page,
		Buffer: r.layers[layer].buffer, State: r.layers[layer].state, Fresh: b.fresh.At,
		Slot:   b.slot.At,
		Misses: b.misses.At + cuda.Ptr(4*layer*r.decodes),
		Offset: int64(layer) * d.cfg.Geometry.BlockBytes, Batch: int32(r.decodes),
		Stride: int32(s.TopK),
		Slots:  int32(d.slots), RowBytes: int32(s.RowBytes()), PageStride: int32(r.pageStride),
		PageTokens: int32(d.cfg.Geometry.BlockTokens)})
}
