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
		row(fmt.Sprintf("prefill of %d tokens, prefix %d, %d/%d heads", c.tokens, c.prefix, c.headsQ, c.headsKV), t, "%.0f TFLOP/s", prefillFlops(a)/t.median/1e9)
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}

// prefillFlops counts 2 products of 2 D operations for each (query, visible key); query i sees prefix + i + 1 keys.
func prefillFlops(a *cuda.PrefillArgs) float64 {
	tokens, prefix := float64(a.QTokens), float64(a.Prefix)
	return 4 * headDim * float64(a.HeadsQ) * (tokens*prefix + tokens*(tokens+1)/2)
}

// pagedPrefill times a chunk whose keys and values lie in blocks of random slots beside the same chunk with tensors, in turns.
func pagedPrefill(b *bench) error {
	for _, c := range []struct{ tokens, prefix, headsQ, headsKV int }{{512, 32768, 32, 32}, {2048, 32768, 32, 32}, {512, 32768, 32, 8}, {2048, 32768, 32, 8}, {32768, 0, 32, 32}} {
		tensors, err := b.prefillArgs(c.tokens, c.prefix, c.headsQ, c.headsKV)
		if err != nil {
			return err
		}
		paged := *tensors
		blocks := (c.tokens + c.prefix) / blockTokens
		paged.TableStride, paged.BlockTokens = int32(blocks), blockTokens
		if paged.Pool, err = b.random(int64(c.headsKV*blocks) * blockBytes / 2); err != nil {
			return err
		}
		if paged.Table, err = upload(b, b.order(c.headsKV*blocks)); err != nil {
			return err
		}
		for _, v := range []struct {
			what string
			args *cuda.PrefillArgs
		}{{"tensors", tensors}, {"blocks", &paged}, {"tensors", tensors}, {"blocks", &paged}} {
			t, err := b.time(8, v.args)
			if err != nil {
				return err
			}
			row(fmt.Sprintf("%d tokens, prefix %d, %d/%d heads, %s", c.tokens, c.prefix, c.headsQ, c.headsKV, v.what), t, "%.0f TFLOP/s", prefillFlops(v.args)/t.median/1e9)
		}
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
