package main

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/cuda"
)

// layerShape is a model's shape for the kernels other than attention.
type layerShape struct {
	name                                     string
	hidden, headsQ, headsKV, ffn, vocabulary int
}

var layerShapes = []layerShape{
	{"LWM-7B", 4096, 32, 32, 11008, 32000}, {"Llama-3-8B", 4096, 32, 8, 14336, 128256},
}

// part is one kernel of a layer and the bytes that it must move.
type part struct {
	what  string
	op    cuda.Operation
	bytes int
}

// layer times a layer without linears and attention, relative to the device copy's rate.
func layer(b *bench) {
	for _, shape := range layerShapes {
		for _, tokens := range []int{1, 32, 512, 2048} {
			for _, p := range b.layerParts(shape, tokens) {
				what := fmt.Sprintf("%s, %s, %d tokens", p.what, shape.name, tokens)
				b.ofCopy(what, b.time(50, p.op), int64(p.bytes))
			}
			b.free()
		}
	}
}

func (b *bench) layerParts(s layerShape, tokens int) []part {
	n, hidden := int32(tokens), int32(s.hidden)
	token, position := make([]int32, tokens), make([]int32, tokens)
	for i := range tokens {
		token[i], position[i] = int32(b.r.IntN(s.vocabulary)), int32(30000+i)
	}
	freq := make([]float32, headDim/2)
	for d := range freq {
		freq[d] = float32(math.Pow(10000, -2*float64(d)/headDim))
	}
	state := func() cuda.Ptr { return b.random(tokens * s.hidden) }
	norm := cuda.RMSNormArgs{
		X: state(), Residual: state(), Weight: b.random(s.hidden), Out: state(),
		Rows: n, Hidden: hidden, Eps: 1e-5,
	}
	last := norm
	last.Residual, last.Row = 0, upload(b, b.order(tokens))
	heads := s.headsQ + 2*s.headsKV
	blocks := (30000+tokens)/blockTokens + 1
	rope := cuda.RopeArgs{
		QKV: b.random(tokens * heads * headDim), Position: upload(b, position),
		InvFreq: upload(b, freq), QOut: b.random(tokens * s.headsQ * headDim),
		Pool:  b.random(s.headsKV * blocks * blockBytes / 2),
		Table: upload(b, b.order(s.headsKV*blocks)), HeadStride: int64(blocks), Tokens: n,
		HeadsQ: int32(s.headsQ), HeadsKV: int32(s.headsKV), HeadDim: headDim,
		BlockTokens: blockTokens,
	}
	inPlace := rope
	inPlace.QOut, inPlace.Pool = 0, 0
	embed := &cuda.EmbedArgs{
		Table: b.random(s.vocabulary * s.hidden), Token: upload(b, token), Out: state(),
		Tokens: n, Hidden: hidden,
	}
	silu := &cuda.SiluMulArgs{
		X: b.random(tokens * 2 * s.ffn), Out: b.random(tokens * s.ffn),
		Tokens: n, FFN: int32(s.ffn),
	}
	argmax := &cuda.ArgmaxArgs{
		Logits: b.random(tokens * s.vocabulary), Out: b.alloc(int64(tokens) * 4), Rows: n,
		Vocab: int32(s.vocabulary), Stride: int32(s.vocabulary),
	}
	each := tokens * 2
	rotated, packed, stored := (s.headsQ+s.headsKV)*headDim, s.headsQ*headDim, 2*s.headsKV*headDim
	return []part{
		{"embedding", embed, each * 2 * s.hidden},
		{"residual and RMSNorm", &norm, each*4*s.hidden + 2*s.hidden},
		{"RMSNorm of gathered rows", &last, each*2*s.hidden + 2*s.hidden},
		{"RoPE in place", &inPlace, each * 2 * rotated},
		{"RoPE, q packed, k and v to blocks", &rope,
			each * (heads*headDim + rotated + packed + stored)},
		{"silu * up", silu, each * 3 * s.ffn},
		{"greedy token", argmax, each * s.vocabulary},
	}
}
