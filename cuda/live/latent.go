package live

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// latent is latent attention (MLA) to the tokens that the model's indexer (DSA) selects: as
// DeepSeek-V3.2 has it, with all KV in HBM, or with hot buffers as HiSparse. It implements
// attention.
//
// An indexer scores all tokens of the context, a top-k selects, and absorbed attention reads the
// rows of the selection. With hot buffers a prefill keeps its rows in HBM until it ends; then each
// layer copies them to pages of the host, and to the buffer if they all fit, and a decode's swap-in
// kernel finds the selection in the buffer, loads what it misses and puts the newest row into both.
type latent struct {
	*Device
	slots int // of a hot buffer; 0: all KV is in HBM

	decodes, most   int      // of the step: decodes, tokens of the longest context
	context         cuda.Ptr // int32 [tokens]
	page            cuda.Ptr // addresses of pages [decodes][pages of the longest context]
	places          []latentPlaces
	filled, nothing cuda.Ptr        // int32 [slots]: tokens of a buffer, in order, or none
	missed          cuda.HostMemory // int32 [layers][MaxRequests]

	// Scratch, fp16 [tokens][..] unless noted.
	down, normed, row, key mem.Buffer // the query's latent, also normed; row and key as projected
	indexQ, weight         mem.Buffer
	scores                 mem.Buffer // fp32 [scoreSlice][most]
	list, count            mem.Buffer // int32 [tokens][TopK], [tokens]
	query, sum             mem.Buffer // [tokens][Heads][Rank]
	fresh, slot, misses    mem.Buffer // of decodes: new rows, int32 [decodes][TopK], [layers][decodes]
}

// latentPlaces are addresses of one layer: the destinations of a token's row and key, the start of
// the rows and keys that it may attend to, and the buffers of decodes.
type latentPlaces struct {
	rowTo, keyTo, rows, keys cuda.Ptr // [tokens]
	buffer, state            cuda.Ptr // [decodes]
}

// scoreSlice is the number of tokens that are scored and ranked together. It bounds the memory of
// scores.
const scoreSlice = 256

// supportsLatent returns an error for a shape that the kernels do not support, with the model's
// key.
func (c *Config) supportsLatent(m cuda.Machine, md *weights.Config) error {
	for _, s := range []struct {
		ok        bool
		key, want string
		got       int
	}{
		{md.Hidden%8 == 0 && md.Hidden <= 32768, "hidden", "a multiple of 8, at most 32768", md.Hidden},
		{md.FFN%8 == 0, "ffn", "a multiple of 8", md.FFN},
		{md.KVRank%8 == 0 && md.KVRank > 0 && md.KVRank <= 512, "kv_lora_rank",
			"a multiple of 8, at most 512", md.KVRank},
		{md.QRank%8 == 0 && md.QRank > 0 && md.QRank <= 32768, "q_lora_rank",
			"a multiple of 8, at most 32768", md.QRank},
		{md.RopeDim%8 == 0 && md.RopeDim > 0 && md.RopeDim <= 128, "qk_rope_dim",
			"a multiple of 8, at most 128", md.RopeDim},
		{md.NopeDim%2 == 0 && md.NopeDim <= 4096, "qk_nope_dim", "an even number, at most 4096",
			md.NopeDim},
		{md.ValueDim%2 == 0, "v_head_dim", "an even number", md.ValueDim},
		{md.IndexHeadDim >= md.RopeDim && md.IndexHeadDim <= 1024 && md.IndexHeadDim%8 == 0,
			"index_head_dim", "a multiple of 8 from qk_rope_dim to 1024", md.IndexHeadDim},
		{md.IndexHeads*md.IndexHeadDim <= 16384, "index_heads",
			"at most 16384 values of all heads of the indexer", md.IndexHeads},
		{md.IndexTopK <= cuda.TopKMax, "index_top_k", fmt.Sprintf("at most %d", cuda.TopKMax),
			md.IndexTopK},
	} {
		if !s.ok {
			return fmt.Errorf("live: %s = %d: the kernels want %s", s.key, s.got, s.want)
		}
	}
	info, err := m.Device()
	if err != nil {
		return err
	}
	// The longest context whose top-k fits a CTA's shared memory (topk.cuh).
	most := (info.SharedBytes - 4096 - 8*max(md.IndexTopK, 128) - 8) / 4
	if info.SharedBytes > 0 && c.Longest > most {
		return fmt.Errorf("live: a context of %d tokens: the top-k of tokens is made in shared "+
			"memory, which has room for %d; shorten the workload", c.Longest, most)
	}
	return nil
}

// open implements attention.
func (d *latent) open() (err error) {
	if d.slots == 0 {
		return nil
	}
	words := slices.Repeat([]int32{-1}, 2*d.slots)
	for i := range d.slots {
		words[i] = int32(i)
	}
	if d.filled, err = uploaded(d.m, words); err != nil {
		return err
	}
	d.nothing = d.filled + cuda.Ptr(4*d.slots)
	d.missed, err = d.m.HostAlloc(4*int64(d.geo.Layers*d.cfg.Spec.MaxRequests), cuda.DriverPages)
	return err
}

// hold implements attention. Memory is allocated in a request's first step, for its maximum number
// of tokens.
func (d *latent) hold(r *request, row *sim.Row) {
	md, layers := d.model, int64(d.geo.Layers)
	if r.keys.Bytes == 0 {
		r.most = row.MaxTokens
		r.keys = d.alloc(layers*int64(2*r.most*md.IndexHeadDim), "keys of the indexer")
		r.latents = d.alloc(layers*int64(2*r.most*md.LatentDim()), "KV")
	}
	if d.slots == 0 || !row.Decode && !row.Emits {
		return
	}
	for len(r.pages) < d.geo.Blocks(row.To) {
		p, err := d.pages.Alloc()
		if d.queue.Fail(err); err != nil {
			return
		}
		r.pages = append(r.pages, p)
	}
	if r.hot.Bytes == 0 {
		r.hot = d.alloc(layers*int64(2*d.slots*md.LatentDim()), "a hot buffer")
		r.hotState = d.alloc(layers*int64(8*d.slots), "a hot buffer's state")
	}
}

// size implements attention.
func (d *latent) size(s *sim.Step) {
	d.decodes, d.most = 0, 0
	tokens := 0
	for i := range s.Rows {
		row := &s.Rows[i]
		tokens += row.To - row.From
		d.most = max(d.most, row.To)
		if row.Decode {
			d.decodes++
		}
	}
	md, n := d.model, padded(tokens)
	for _, g := range []struct {
		b     *mem.Buffer
		bytes int
		what  string
	}{
		{&d.down, 2 * n * md.QRank, "queries' latents"},
		{&d.normed, 2 * n * md.QRank, "queries' latents"},
		{&d.row, 2 * n * md.LatentDim(), "latents"}, {&d.key, 2 * n * md.IndexHeadDim, "keys"},
		{&d.indexQ, 2 * n * md.IndexHeads * md.IndexHeadDim, "queries of the indexer"},
		{&d.weight, 2 * n * md.IndexHeads, "weights of the indexer's heads"},
		{&d.scores, 4 * min(n, scoreSlice) * d.most, "scores"},
		{&d.list, 4 * n * md.IndexTopK, "selected tokens"}, {&d.count, 4 * n, "selected tokens"},
		{&d.query, 2 * n * md.QHeads * md.KVRank, "queries"},
		{&d.sum, 2 * n * md.QHeads * md.KVRank, "sums"},
		{&d.fresh, 2 * d.decodes * md.LatentDim(), "new rows"},
		{&d.slot, 4 * d.decodes * md.IndexTopK, "slots"},
		{&d.misses, 4 * d.geo.Layers * d.decodes, "misses"},
	} {
		d.grow(g.b, int64(g.bytes), g.what)
	}
}

// begin implements attention.
func (d *latent) begin(s *sim.Step) {
	var context []int32
	for i := range s.Rows {
		for p := s.Rows[i].From; p < s.Rows[i].To; p++ {
			context = append(context, int32(p+1))
		}
	}
	d.context = d.listed(context)
	stride := d.geo.Blocks(d.most)
	if d.slots > 0 {
		pages, at := d.stage.Longs(d.decodes * stride)
		for i := range d.decodes {
			for j, p := range d.of[i].pages {
				pages[i*stride+j] = int64(d.dram.Block(p, 0))
			}
		}
		d.page = at
	}
	d.places = d.places[:0]
	for layer := range d.geo.Layers {
		d.places = append(d.places, d.placesOf(layer, len(context)))
	}
}

// placesOf uploads the addresses of a layer.
func (d *latent) placesOf(layer, tokens int) (p latentPlaces) {
	md := d.model
	row, key, hot := 2*md.LatentDim(), 2*md.IndexHeadDim, 2*d.slots*md.LatentDim()
	longs, at := d.stage.Longs(4*tokens + 2*d.decodes)
	array := func(n int) (words []int64, to cuda.Ptr) {
		words, to = longs[:n], at
		longs, at = longs[n:], at+cuda.Ptr(8*n)
		return words, to
	}
	var rowTo, keyTo, rows, keys []int64
	rowTo, p.rowTo = array(tokens)
	keyTo, p.keyTo = array(tokens)
	rows, p.rows = array(tokens)
	keys, p.keys = array(tokens)
	i := 0
	for n, r := range d.of {
		of := &d.rows[n]
		first := int64(r.keys.At) + int64(layer*r.most*key)
		kv := int64(r.latents.At) + int64(layer*r.most*row)
		if d.slots > 0 && of.Decode {
			kv = int64(r.hot.At) + int64(layer*hot)
		}
		for t := of.From; t < of.To; t, i = t+1, i+1 {
			keys[i], keyTo[i] = first, first+int64(t*key)
			rows[i], rowTo[i] = kv, kv+int64(t*row)
			if d.slots > 0 && of.Decode { // the swap-in kernel brings it to its slot and to the host
				rowTo[i] = int64(d.fresh.At) + int64(n*row)
			}
		}
	}
	if d.slots > 0 {
		buffers, bufferAt := array(d.decodes)
		states, stateAt := array(d.decodes)
		for i, r := range d.of[:d.decodes] {
			buffers[i] = int64(r.hot.At) + int64(layer*hot)
			states[i] = int64(r.hotState.At) + int64(layer*8*d.slots)
		}
		p.buffer, p.state = bufferAt, stateAt
	}
	return p
}

// score and move implement attention: the model selects and determines the moves.
func (d *latent) score(int, *sim.Work) {}
func (d *latent) move(*kv.Moves)       {}

// project implements attention: the queries, the indexer's queries and the cached row and key of
// each token.
func (d *latent) project(layer int) {
	md, w := d.model, &d.model.tensors[layer]
	n, at, h, q := d.active.tokens, &d.places[layer], d.scratch.h.At, d.scratch.qkv.At
	d.linear(weights.QDown, layer, h, d.down.At, n)
	d.launch(&cuda.RMSNormArgs{X: d.down.At, Weight: w[weights.QNorm], Out: d.normed.At,
		Rows: int32(n), Hidden: int32(md.QRank), Eps: float32(md.Eps)})
	d.linear(weights.QUp, layer, d.normed.At, q, n)
	d.linear(weights.IndexQ, layer, d.normed.At, d.indexQ.At, n)
	d.linear(weights.KVDown, layer, h, d.row.At, n)
	d.linear(weights.IndexKey, layer, h, d.key.At, n)
	d.linear(weights.IndexWeight, layer, h, d.weight.At, n)
	d.rotate(q+cuda.Ptr(2*md.NopeDim), md.QHeads, md.HeadDim)
	d.rotate(d.indexQ.At, md.IndexHeads, md.IndexHeadDim)
	d.launch(&cuda.LatentWriteArgs{Latent: d.row.At, Key: d.key.At, Norm: w[weights.KVNorm],
		KeyNorm: w[weights.IndexNorm], KeyBias: w[weights.IndexBias], Position: d.active.position,
		InvFreq: md.invFreq, RowTo: at.rowTo, KeyTo: at.keyTo, Tokens: int32(n),
		Rank: int32(md.KVRank), Rope: int32(md.RopeDim), KeyDim: int32(md.IndexHeadDim),
		Eps: float32(md.Eps)})
}

func (d *latent) rotate(x cuda.Ptr, heads, stride int) {
	d.launch(&cuda.RotateArgs{X: x, Position: d.active.position, InvFreq: d.model.invFreq,
		TokenStride: int64(heads * stride), HeadStride: int64(stride),
		Tokens: int32(d.active.tokens), Heads: int32(heads), Dim: int32(d.model.RopeDim)})
}

// attend implements attention: it selects, loads the buffers' misses and attends to the selection.
func (d *latent) attend(layer int, _ *sim.Work) {
	md, n := d.model, d.active.tokens
	d.selects(layer)
	d.clock.mark(phaseScoring)
	d.launch(&cuda.HeadLinearArgs{X: d.scratch.qkv.At, W: md.tensors[layer][weights.KeyUp],
		Y: d.query.At, XToken: int64(md.QHeads * md.HeadDim), XHead: int64(md.HeadDim),
		Tokens: int32(n), Heads: int32(md.QHeads), In: int32(md.NopeDim), Out: int32(md.KVRank)})
	own := 0 // tokens whose lists are slots
	if d.slots > 0 && d.decodes > 0 {
		own = d.decodes
		d.swap(layer)
		d.clock.mark(phaseLoadStall)
		d.attendTo(layer, d.slot.At, 0, own)
	}
	d.attendTo(layer, d.list.At, own, n)
	d.launch(&cuda.HeadLinearArgs{X: d.sum.At, W: md.tensors[layer][weights.ValueUp],
		Y: d.scratch.attn.At, XToken: int64(md.QHeads * md.KVRank), XHead: int64(md.KVRank),
		Tokens: int32(n), Heads: int32(md.QHeads), In: int32(md.KVRank), Out: int32(md.ValueDim)})
	d.clock.mark(phaseSparse)
	d.showTokens(layer)
	for i, r := range d.of {
		if row := &d.rows[i]; d.slots > 0 && row.Emits && !row.Decode {
			d.settle(r, layer, row.To)
		}
	}
}

// selects scores the contexts of all tokens and selects each one's best.
func (d *latent) selects(layer int) {
	md := d.model
	for from := 0; from < d.active.tokens; from += scoreSlice {
		n := min(scoreSlice, d.active.tokens-from)
		context := d.context + cuda.Ptr(4*from)
		d.launch(&cuda.IndexScoresArgs{Q: d.indexQ.At + cuda.Ptr(2*from*md.IndexHeads*md.IndexHeadDim),
			Weight: d.weight.At + cuda.Ptr(2*from*md.IndexHeads),
			Key:    d.places[layer].keys + cuda.Ptr(8*from), Context: context, Scores: d.scores.At,
			Rows: int32(n), Heads: int32(md.IndexHeads), Dim: int32(md.IndexHeadDim), Stride: int32(d.most),
			Scale: float32(1 / math.Sqrt(float64(md.IndexHeads*md.IndexHeadDim)))},
			&cuda.TopKArgs{Scores: d.scores.At, Blocks: context,
				List: d.list.At + cuda.Ptr(4*from*md.IndexTopK), Count: d.count.At + cuda.Ptr(4*from),
				Units: int32(n), ScoreStride: int32(d.most), ListStride: int32(md.IndexTopK),
				K: int32(md.IndexTopK)})
	}
}

// attendTo runs the attention of tokens [from, to) to their lists.
func (d *latent) attendTo(layer int, lists cuda.Ptr, from, to int) {
	md := d.model
	query, at := md.QHeads*md.HeadDim, cuda.Ptr(2*from*md.QHeads*md.KVRank)
	d.launch(&cuda.LatentAttendArgs{Q: d.query.At + at,
		QRope: d.scratch.qkv.At + cuda.Ptr(2*(from*query+md.NopeDim)),
		KV:    d.places[layer].rows + cuda.Ptr(8*from), List: lists + cuda.Ptr(4*from*md.IndexTopK),
		Count: d.count.At + cuda.Ptr(4*from), Out: d.sum.At + at, RopeRow: int64(query),
		RopeHead: int64(md.HeadDim), Rows: int32(to - from), Heads: int32(md.QHeads),
		Rank: int32(md.KVRank), Rope: int32(md.RopeDim), Stride: int32(md.IndexTopK),
		Scale: float32(1 / math.Sqrt(float64(md.HeadDim)))})
}

// swap looks up the decodes' selected tokens in their buffers, and loads the misses.
func (d *latent) swap(layer int) {
	md := d.model
	d.launch(&cuda.SwapInArgs{List: d.list.At, Count: d.count.At, Context: d.context, Page: d.page,
		Buffer: d.places[layer].buffer, State: d.places[layer].state, Fresh: d.fresh.At,
		Slot: d.slot.At, Misses: d.misses.At + cuda.Ptr(4*layer*d.decodes),
		Offset: int64(layer) * d.geo.BlockBytes, Batch: int32(d.decodes), Stride: int32(md.IndexTopK),
		Slots: int32(d.slots), RowBytes: int32(2 * md.LatentDim()),
		PageStride: int32(d.geo.Blocks(d.most)), PageTokens: int32(d.geo.BlockTokens)})
}

// settle ends a prefill with hot buffers in one layer: its rows are copied to the host, and to the
// buffer if they all fit; otherwise the buffer begins empty. The copies are on the stream before
// any work that overwrites their source.
func (d *latent) settle(r *request, layer, tokens int) {
	block, row := d.geo.BlockTokens, 2*d.model.LatentDim()
	copies := func(dst, src cuda.Ptr, bytes int) {
		d.launch(&cuda.MemcpyArgs{Dst: dst, Src: src, Bytes: int64(bytes)})
	}
	rows := r.latents.At + cuda.Ptr(layer*r.most*row)
	for i := 0; i*block < tokens; i++ {
		copies(d.dram.Block(r.pages[i], layer), rows+cuda.Ptr(i*block*row),
			min(block, tokens-i*block)*row)
	}
	d.counters.Saved += int64(tokens)
	from := d.nothing
	if tokens <= d.slots {
		from = d.filled
		copies(r.hot.At+cuda.Ptr(layer*d.slots*row), rows, tokens*row)
	}
	state := r.hotState.At + cuda.Ptr(layer*8*d.slots)
	copies(state, from, 4*d.slots)
	copies(state+cuda.Ptr(4*d.slots), d.filled, 4*d.slots)
}

// end implements attention.
func (d *latent) end() {
	if n := d.geo.Layers * d.decodes; d.slots > 0 && n > 0 {
		d.launch(&cuda.MemcpyArgs{Dst: d.missed.Ptr(), Src: d.misses.At, Bytes: int64(4 * n)})
	}
}

// ended implements attention: it counts, in rows of one token in one layer.
func (d *latent) ended() error {
	for i, r := range d.of {
		if row := &d.rows[i]; row.Decode {
			d.counters.Selected += int64(d.geo.Layers * min(d.model.IndexTopK, row.To))
		} else if d.slots > 0 && row.Emits { // its rows are on the host, and in its buffers
			d.free(&r.latents)
		}
	}
	if d.slots > 0 {
		n := d.geo.Layers * d.decodes
		for _, misses := range cuda.Slice[int32](d.missed)[:n] {
			d.counters.Loaded += int64(misses)
		}
		d.counters.Saved += int64(n)
	}
	return nil
}

// showTokens passes a layer's selections to Config.ChosenTokens, if set.
func (d *latent) showTokens(layer int) {
	if d.cfg.ChosenTokens == nil {
		return
	}
	k := d.model.IndexTopK
	lists := d.download(d.list.At, d.active.tokens*k)
	counts := d.download(d.count.At, d.active.tokens)
	var misses []int32
	if d.slots > 0 {
		misses = d.download(d.misses.At+cuda.Ptr(4*layer*d.decodes), d.decodes)
	}
	at := 0
	for i, r := range d.of {
		for p := d.rows[i].From; p < d.rows[i].To && d.queue.Err() == nil; p, at = p+1, at+1 {
			missed := -1
			if at < len(misses) {
				missed = int(misses[at])
			}
			d.cfg.ChosenTokens(r.id, p, layer, lists[at*k:][:counts[at]], missed)
		}
	}
}
