package soft

import (
	"slices"
	"testing"
	"time"

	"sparseserve/cuda"
)

// tinyModel runs a forward pass of a random Llama, one operation after the other on one stream, and returns each position's next token.
func tinyModel(g *rig) []int32 {
	const layers, hidden, heads, dim, ffn, vocab, tokens, block = 2, 192, 3, 64, 512, 1000, 200, 16
	const blocks = (tokens + block - 1) / block
	s := g.stream()
	weights := func(n int64, scale float32) cuda.Ptr {
		p := g.device(int(2 * n))
		g.must(g.Fill(&cuda.FillArgs{Dst: p, Count: n, Seed: uint64(n), Scale: scale}, s))
		return p
	}
	tensor := func(width int) cuda.Ptr { return g.device(tokens * width * 2) }
	position, table, token, freq := make([]int32, tokens), make([]int32, heads*blocks), make([]int32, tokens), make([]float32, dim/2)
	for i := range position {
		position[i], token[i] = int32(i), int32(i*i%vocab)
	}
	for i := range table {
		table[i] = int32(i)
	}
	for i := range freq {
		freq[i] = 1 / float32(i+1)
	}
	embedding, head, norm := weights(vocab*hidden, 1), weights(vocab*hidden, 1), weights(hidden, 1)
	wQKV, wOut, wUp, wDown := weights(3*hidden*hidden, 0.1), weights(hidden*hidden, 0.1), weights(2*ffn*hidden, 0.1), weights(ffn*hidden, 0.1)
	x, normed, residual, qkv, q, attended := tensor(hidden), tensor(hidden), tensor(hidden), tensor(3*hidden), tensor(hidden), tensor(hidden)
	wide, gated, logits, pool, next := tensor(2*ffn), tensor(ffn), tensor(vocab), g.device(heads*blocks*4*block*dim), g.device(tokens*4)
	onTable := upload(g, table)

	linear := func(x, w, y cuda.Ptr, in, out int32) {
		g.must(g.Linear(&cuda.LinearArgs{X: x, W: w, Y: y, Tokens: tokens, In: in, Out: out}, s))
	}
	addNorm := func() {
		g.must(g.RMSNorm(&cuda.RMSNormArgs{X: x, Residual: residual, Weight: norm, Out: normed, Rows: tokens, Hidden: hidden, Eps: 1e-5}, s))
	}
	g.must(g.Embed(&cuda.EmbedArgs{Table: embedding, Token: upload(g, token), Out: x, Tokens: tokens, Hidden: hidden}, s))
	g.must(g.Memset(&cuda.MemsetArgs{Dst: residual, Bytes: tokens * hidden * 2}, s))
	for range layers {
		addNorm()
		linear(normed, wQKV, qkv, hidden, 3*hidden)
		g.must(g.Rope(&cuda.RopeArgs{QKV: qkv, Position: upload(g, position), InvFreq: upload(g, freq), QOut: q, Pool: pool, Table: onTable, HeadStride: blocks,
			Tokens: tokens, HeadsQ: heads, HeadsKV: heads, HeadDim: dim, BlockTokens: block}, s))
		g.must(g.Prefill(&cuda.PrefillArgs{Q: q, Out: attended, QTokenStride: hidden, QHeadStride: dim, OutTokenStride: hidden, OutHeadStride: dim, QTokens: tokens,
			HeadsQ: heads, HeadsKV: heads, HeadDim: dim, Scale: 0.125, Pool: pool, Table: onTable, TableStride: blocks, BlockTokens: block}, s))
		linear(attended, wOut, x, hidden, hidden)
		addNorm()
		linear(normed, wUp, wide, hidden, 2*ffn)
		g.must(g.SiluMul(&cuda.SiluMulArgs{X: wide, Out: gated, Tokens: tokens, FFN: ffn}, s))
		linear(gated, wDown, x, ffn, hidden)
	}
	addNorm()
	linear(normed, head, logits, hidden, vocab)
	g.must(g.Argmax(&cuda.ArgmaxArgs{Logits: logits, Out: next, Rows: tokens, Vocab: vocab, Stride: vocab}, s))
	return download[int32](g, next, tokens)
}

// A pass of a tiny model is quick enough for tests that make hundreds, and Late changes nothing but when it is done.
func TestTinyModel(t *testing.T) {
	start := time.Now()
	want := tinyModel(newRig(t, Config{}))
	took := time.Since(start)
	t.Log(took)
	if took > 5*time.Second {
		t.Errorf("a forward pass took %v", took)
	}
	distinct := map[int32]bool{}
	for _, token := range want {
		distinct[token] = true
	}
	if len(distinct) < 20 {
		t.Errorf("%d next tokens of 200 positions: %v", len(distinct), want)
	}
	if got := tinyModel(newRig(t, Config{Late: true, Seed: 1})); !slices.Equal(got, want) {
		t.Errorf("late: %v, want %v", got, want)
	}
}
