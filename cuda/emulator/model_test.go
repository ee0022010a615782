package emulator

import (
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// tinyModel runs a forward pass of a random Llama, one operation after the other on one stream, and
// returns each position's next token, and the same model for the reference.
func tinyModel(g *fixture, tokens int) ([]int32, *reference.Llama) {
	const layers, hidden, heads, dim, ffn, vocab, block = 2, 192, 3, 64, 512, 1000, 16
	blocks := (tokens + block - 1) / block
	s := g.stream()
	seed := uint64(0)
	weights := func(n int64, scale float32) (cuda.Ptr, []float64) {
		p := g.device(int(2 * n))
		seed++
		g.must(g.Launch(&cuda.FillArgs{Dst: p, Count: n, Seed: seed, Scale: scale}, s))
		g.must(g.StreamSync(s))
		return p, cuda.Floats(download[cuda.Half](g, p, int(n)))
	}
	tensor := func(width int) cuda.Ptr { return g.device(tokens * width * 2) }
	position, table, token, freq := make([]int32, tokens), make([]int32, heads*blocks),
		make([]int32, tokens), make([]float32, dim/2)
	for i := range position {
		position[i], token[i] = int32(i), int32(tokenAt(i))
	}
	for i := range table {
		table[i] = int32(i)
	}
	for i := range freq {
		freq[i] = 1 / float32(i+1)
	}
	model := &reference.Llama{HeadsQ: heads, HeadsKV: heads, Dim: dim,
		Body:   reference.Body{Eps: float64(float32(1e-5)), InvFreq: freq, Round: cuda.Rounded},
		Layers: make([]reference.LlamaLayer, layers)}
	layer := &model.Layers[0]
	var embedding, head, norm, wQKV, wOut, wUp, wDown cuda.Ptr
	embedding, model.Embed = weights(vocab*hidden, 1)
	head, model.Head = weights(vocab*hidden, 0.5)
	norm, model.Norm = weights(hidden, 1)
	layer.AttnNorm, layer.MLPNorm = model.Norm, model.Norm
	wQKV, layer.QKV = weights(3*hidden*hidden, 0.1)
	wOut, layer.O = weights(hidden*hidden, 0.1)
	wUp, layer.GateUp = weights(2*ffn*hidden, 0.1)
	wDown, layer.Down = weights(ffn*hidden, 0.1)
	model.Layers[1] = *layer
	x, normed, residual, qkv, q, attended := tensor(hidden), tensor(hidden), tensor(hidden),
		tensor(3*hidden), tensor(hidden), tensor(hidden)
	wide, gated, logits, pool, next := tensor(2*ffn), tensor(ffn), tensor(vocab),
		g.device(heads*blocks*4*block*dim), g.device(tokens*4)
	// before any work that could wait
	onTable, onPosition, onFreq, onToken := upload(g, table), upload(g, position), upload(g, freq),
		upload(g, token)

	linear := func(x, w, y cuda.Ptr, in, out int32) {
		g.must(g.Launch(&cuda.LinearArgs{X: x, W: w, Y: y, Tokens: int32(tokens), In: in, Out: out}, s))
	}
	addNorm := func() {
		g.must(g.Launch(&cuda.RMSNormArgs{X: x, Residual: residual, Weight: norm, Out: normed,
			Rows: int32(tokens), Hidden: hidden, Eps: 1e-5}, s))
	}
	g.must(g.Launch(&cuda.EmbedArgs{Table: embedding, Token: onToken, Out: x, Tokens: int32(tokens),
		Hidden: hidden}, s))
	g.must(g.Launch(&cuda.MemsetArgs{Dst: residual, Bytes: int64(tokens) * hidden * 2}, s))
	for range layers {
		addNorm()
		linear(normed, wQKV, qkv, hidden, 3*hidden)
		g.must(g.Launch(&cuda.RopeArgs{QKV: qkv, Position: onPosition, InvFreq: onFreq, QOut: q,
			Pool: pool, Table: onTable, HeadStride: int64(blocks),
			Tokens: int32(tokens), HeadsQ: heads, HeadsKV: heads, HeadDim: dim, BlockTokens: block}, s))
		g.must(g.Launch(&cuda.PrefillArgs{Q: q, Out: attended, QTokenStride: hidden, QHeadStride: dim,
			OutTokenStride: hidden, OutHeadStride: dim, QTokens: int32(tokens),
			HeadsQ: heads, HeadsKV: heads, HeadDim: dim, Scale: 0.125, Pool: pool, Table: onTable,
			TableStride: int32(blocks), BlockTokens: block}, s))
		linear(attended, wOut, x, hidden, hidden)
		addNorm()
		linear(normed, wUp, wide, hidden, 2*ffn)
		g.must(g.Launch(&cuda.SiluMulArgs{X: wide, Out: gated, Tokens: int32(tokens), FFN: ffn}, s))
		linear(gated, wDown, x, ffn, hidden)
	}
	addNorm()
	linear(normed, head, logits, hidden, vocab)
	g.must(g.Launch(&cuda.ArgmaxArgs{Logits: logits, Out: next, Rows: int32(tokens), Vocab: vocab,
		Stride: vocab}, s))
	return download[int32](g, next, tokens), model
}

func tokenAt(i int) int { return i * i % 1000 }

// The operations in a row are the model, rounding included.
func TestTinyModelMatchesTheReference(t *testing.T) {
	const tokens = 45
	got, model := tinyModel(newFixture(t, Config{}), tokens)
	prompt, want := make([]int, tokens), make([]int32, tokens)
	for i := range prompt {
		prompt[i] = tokenAt(i)
	}
	for i, logits := range model.Forward(prompt, reference.Selector{}) {
		want[i] = int32(reference.Argmax(logits))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Late changes nothing of a pass but when it is done.
func TestTinyModel(t *testing.T) {
	want, _ := tinyModel(newFixture(t, Config{}), 200)
	distinct := map[int32]bool{}
	for _, token := range want {
		distinct[token] = true
	}
	if len(distinct) < 20 {
		t.Errorf("%d next tokens of 200 positions: %v", len(distinct), want)
	}
	if got, _ := tinyModel(newFixture(t, Config{Late: true, Seed: 1}), 200); !slices.Equal(got, want) {
		t.Errorf("late: %v, want %v", got, want)
	}
}
