package main

import (
	"fmt"
	"math"

	"sparseserve/cuda"
)

// prefillArgs lays q, k and v out as [token][head][d].
func (b *bench) prefillArgs(tokens, prefix, headsQ, headsKV int) (*cuda.PrefillArgs, error) {
	rowQ, rowKV := int64(headsQ*headDim), int64(headsKV*headDim)
	a := &cuda.PrefillArgs{QTokenStride: rowQ, QHeadStride: headDim, KTokenStride: rowKV, KHeadStride: headDim, VTokenStride: rowKV, VHeadStride: headDim, OutTokenStride: rowQ,
		OutHeadStride: headDim, QTokens: int32(tokens), Prefix: int32(prefix), HeadsQ: int32(headsQ), HeadsKV: int32(headsKV), HeadDim: headDim, Scale: float32(1 / math.Sqrt(headDim))}
	for p, rows := range map[*cuda.Ptr]int64{&a.Q: int64(tokens) * rowQ, &a.K: int64(tokens+prefix) * rowKV, &a.V: int64(tokens+prefix) * rowKV, &a.Out: int64(tokens) * rowQ} {
		var err error
		if *p, err = b.random(rows); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func prefill(b *bench) error {
	for _, c := range []struct{ tokens, prefix, headsQ, headsKV int }{{2048, 0, 32, 32}, {8192, 0, 32, 32}, {32768, 0, 32, 32}, {32768, 0, 32, 8}, {512, 8192, 32, 32}, {2048, 30720, 32, 32}} {
		a, err := b.prefillArgs(c.tokens, c.prefix, c.headsQ, c.headsKV)
		if err != nil {
			return err
		}
		t, err := b.time(8, a)
		if err != nil {
			return err
		}
		// 2 products of 2 D operations for each (query, visible key); query i sees prefix + i + 1 keys.
		pairs := float64(c.tokens)*float64(c.prefix) + float64(c.tokens)*float64(c.tokens+1)/2
		row(fmt.Sprintf("prefill of %d tokens, prefix %d, %d/%d heads", c.tokens, c.prefix, c.headsQ, c.headsKV), t, "%.0f TFLOP/s", 4*headDim*pairs*float64(c.headsQ)/t.median/1e9)
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) linear(tokens, in, out int) (*cuda.LinearArgs, error) {
	a := &cuda.LinearArgs{Tokens: int32(tokens), In: int32(in), Out: int32(out)}
	for p, count := range map[*cuda.Ptr]int64{&a.X: int64(tokens) * int64(in), &a.W: int64(in) * int64(out), &a.Y: int64(tokens) * int64(out)} {
		var err error
		if *p, err = b.random(count); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// linears times the four linears of an LWM-7B layer: QKV, output, gate and up, down.
func linears(b *bench) error {
	for _, tokens := range []int{1, 128, 2048, 8192} {
		var calls []cuda.Operation
		flops := 0.0
		for _, shape := range [][2]int{{4096, 3 * 4096}, {4096, 4096}, {4096, 2 * 11008}, {11008, 4096}} {
			a, err := b.linear(tokens, shape[0], shape[1])
			if err != nil {
				return err
			}
			calls, flops = append(calls, a), flops+2*float64(tokens)*float64(shape[0])*float64(shape[1])
		}
		t, err := b.time(30, calls...)
		if err != nil {
			return err
		}
		row(fmt.Sprintf("linears of an LWM-7B layer, %d tokens", tokens), t, "%.0f TFLOP/s", flops/t.median/1e9)
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}
