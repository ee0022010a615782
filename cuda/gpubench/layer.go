package main

import (
	"fmt"
	"math"

	"sparseserve/cuda"
)

// layerShape is a model, as far as the kernels beside linears and attention see it.
type layerShape struct {
	name                                     string
	hidden, headsQ, headsKV, ffn, vocabulary int
}

var layerShapes = []layerShape{{"LWM-7B", 4096, 32, 32, 11008, 32000}, {"Llama-3-8B", 4096, 32, 8, 14336, 128256}}

// part is one of these kernels and the bytes that it must move.
type part struct {
	what  string
	op    cuda.Operation
	bytes int64
}

// layer times what a layer needs beside linears and attention, against the device copy's rate.
func layer(b *bench) error {
	for _, shape := range layerShapes {
		for _, tokens := range []int{1, 32, 512, 2048} {
			parts, err := b.layerParts(shape, tokens)
			if err != nil {
				return err
			}
			for _, p := range parts {
				t, err := b.time(50, p.op)
				if err != nil {
					return err
				}
				row(fmt.Sprintf("%s, %s, %d tokens", p.what, shape.name, tokens), t, "%.2f TB/s, %.3f of the device copy", gbs(p.bytes, t)/1e3, gbs(p.bytes, t)/b.copy)
			}
			if err := b.freeAll(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) layerParts(s layerShape, tokens int) ([]part, error) {
	var err error
	get := func(p cuda.Ptr, e error) cuda.Ptr {
		if err == nil {
			err = e
		}
		return p
	}
	halves := func(n int) cuda.Ptr { return get(b.random(int64(n))) }
	n := int32(tokens)
	token, position := make([]int32, tokens), make([]int32, tokens)
	for i := range tokens {
		token[i], position[i] = int32(b.rand().IntN(s.vocabulary)), int32(30000+i)
	}
	embed := &cuda.EmbedArgs{Table: halves(s.vocabulary * s.hidden), Token: get(upload(b, token)), Out: halves(tokens * s.hidden), Tokens: n, Hidden: int32(s.hidden)}
	norm := &cuda.RMSNormArgs{X: halves(tokens * s.hidden), Residual: halves(tokens * s.hidden), Weight: halves(s.hidden), Out: halves(tokens * s.hidden), Rows: n, Hidden: int32(s.hidden), Eps: 1e-5}
	last := *norm
	last.Residual, last.Row = 0, get(upload(b, b.order(tokens)))

	freq := make([]float32, headDim/2)
	for d := range freq {
		freq[d] = float32(math.Pow(10000, -2*float64(d)/headDim))
	}
	heads := s.headsQ + 2*s.headsKV
	blocks := (30000+tokens)/blockTokens + 1
	pool := halves(s.headsKV * blocks * blockBytes / 2)
	rope := &cuda.RopeArgs{QKV: halves(tokens * heads * headDim), Position: get(upload(b, position)), InvFreq: get(upload(b, freq)), QOut: halves(tokens * s.headsQ * headDim), Pool: pool,
		Table: get(upload(b, b.order(s.headsKV*blocks))), HeadStride: int64(blocks), Tokens: n, HeadsQ: int32(s.headsQ), HeadsKV: int32(s.headsKV), HeadDim: headDim, BlockTokens: blockTokens}
	inPlace := *rope
	inPlace.QOut, inPlace.Pool = 0, 0

	silu := &cuda.SiluMulArgs{X: halves(tokens * 2 * s.ffn), Out: halves(tokens * s.ffn), Tokens: n, FFN: int32(s.ffn)}
	argmax := &cuda.ArgmaxArgs{Logits: halves(tokens * s.vocabulary), Out: get(b.alloc(int64(tokens) * 4)), Rows: n, Vocab: int32(s.vocabulary), Stride: int32(s.vocabulary)}

	rowBytes := int64(tokens) * 2
	turned, packed, stored := int64(s.headsQ+s.headsKV)*headDim, int64(s.headsQ)*headDim, int64(2*s.headsKV)*headDim
	return []part{
		{"embedding", embed, rowBytes * 2 * int64(s.hidden)},
		{"residual and RMSNorm", norm, rowBytes*4*int64(s.hidden) + 2*int64(s.hidden)},
		{"RMSNorm of gathered rows", &last, rowBytes*2*int64(s.hidden) + 2*int64(s.hidden)},
		{"RoPE in place", &inPlace, rowBytes * 2 * turned},
		{"RoPE, q packed, k and v to blocks", rope, rowBytes * (int64(heads)*headDim + turned + packed + stored)},
		{"silu * up", silu, rowBytes * 3 * int64(s.ffn)},
		{"greedy token", argmax, rowBytes * int64(s.vocabulary)},
	}, err
}

// order returns the numbers 0 to n - 1, shuffled.
func (b *bench) order(n int) []int32 {
	order := make([]int32, n)
	for i, x := range b.rand().Perm(n) {
		order[i] = int32(x)
	}
	return order
}
