package calibrate

import (
	"fmt"
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/hw"
	"math"
)

func (g *gpuBench) setupPrefill(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	calls, verify, err := g.prefillOp(s, m, []chunkSpan{{p.At("query_tokens"), p.At("prefix_tokens")}})
	return &setup{bench: cuda.Bench{Calls: calls}, verify: verify, settle: g.settling(p)}, err
}

// prefillOp readies the attention of a prompt's chunks in one layer. The keys and values
// of a prompt's first chunk are one after another, head by head (the live loop's are
// token by token, between its queries'); those of later chunks and of what is before
// them are in blocks anywhere, as rope leaves them. With it comes the check of the last
// chunk.
func (g *gpuBench) prefillOp(s *cuda.Session, m *hw.Model, spans []chunkSpan) ([]cuda.Operation, func(*cuda.Session) error, error) {
	d, hq, hk := int64(m.HeadDim), int64(m.QHeads), int64(m.KVHeads)
	var queries, first, keys int64 // of all chunks, of first ones, and tokens in blocks
	for _, c := range spans {
		queries = max(queries, c.query)
		if c.prefix == 0 {
			first = max(first, c.query)
		} else {
			keys = max(keys, c.prefix+c.query)
		}
	}
	base := cuda.PrefillArgs{
		QTokenStride: hq * d, QHeadStride: d, OutTokenStride: hq * d, OutHeadStride: d,
		KTokenStride: d, KHeadStride: first * d, VTokenStride: d, VHeadStride: first * d,
		HeadsQ: int32(hq), HeadsKV: int32(hk), HeadDim: int32(d), Scale: float32(1 / math.Sqrt(float64(d))),
	}
	var err error
	for _, in := range []struct {
		p *cuda.Ptr
		n int64
	}{{&base.Q, queries * hq * d}, {&base.K, first * hk * d}, {&base.V, first * hk * d}} {
		if *in.p, err = g.random(s, max(2, in.n)); err != nil {
			return nil, nil, err
		}
	}
	if base.Out, err = g.poisoned(s, 2*queries*hq*d); err != nil {
		return nil, nil, err
	}
	paged, slots, err := g.pagedPool(s, m, keys)
	if err != nil {
		return nil, nil, err
	}
	var calls []cuda.Operation
	for _, c := range spans {
		a := base
		a.QTokens, a.Prefix = int32(c.query), int32(c.prefix)
		if c.prefix > 0 {
			a.Pool, a.Table, a.TableStride, a.BlockTokens = paged.Pool, paged.Table, paged.TableStride, paged.BlockTokens
		}
		calls = append(calls, &a)
	}
	last := calls[len(calls)-1].(*cuda.PrefillArgs)
	return calls, func(s *cuda.Session) error {
		if err := s.Launch(last, 0); err != nil {
			return err
		}
		rows := []int64{int64(last.QTokens) - 1}
		if int64(last.Prefix)+int64(last.QTokens) <= 8192 {
			rows = append(rows, 0, g.r.Int64N(int64(last.QTokens)))
		}
		for _, row := range rows {
			if err := checkPrefill(s, last, slots, g.r.Int64N(hq), row); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// pagedPool fills blocks of so many tokens' keys and values, those of each KV head
// anywhere among all; slots are what its table holds.
func (g *gpuBench) pagedPool(s *cuda.Session, m *hw.Model, tokens int64) (a cuda.PrefillArgs, slots []int32, err error) {
	if tokens == 0 {
		return a, nil, nil
	}
	blocks := (tokens + blockTokens - 1) / blockTokens
	slots = make([]int32, blocks*int64(m.KVHeads))
	for i, slot := range g.r.Perm(len(slots)) {
		slots[i] = int32(slot)
	}
	a.TableStride, a.BlockTokens = int32(blocks), blockTokens
	if a.Pool, err = g.random(s, int64(len(slots))*2*blockTokens*int64(m.HeadDim)); err != nil {
		return a, nil, err
	}
	a.Table, err = upload(g, s, slots)
	return a, slots, err
}

// chunkSpan is a chunk of query tokens after some earlier ones.
type chunkSpan struct{ query, prefix int64 }

// checkPrefill computes a token's row of a head anew.
func checkPrefill(s *cuda.Session, a *cuda.PrefillArgs, slots []int32, head, token int64) error {
	d, seen := int64(a.HeadDim), int64(a.Prefix)+token+1
	kv := head / int64(a.HeadsQ/a.HeadsKV)
	q, err := floats(s, a.Q+cuda.Ptr(2*(token*a.QTokenStride+head*a.QHeadStride)), d)
	if err != nil {
		return err
	}
	sum := reference.NewSoftmax(int(d))
	if a.Table == 0 {
		k, err := floats(s, a.K+cuda.Ptr(2*kv*a.KHeadStride), seen*d)
		if err != nil {
			return err
		}
		v, err := floats(s, a.V+cuda.Ptr(2*kv*a.VHeadStride), seen*d)
		if err != nil {
			return err
		}
		attend(&sum, q, k, v, float64(a.Scale))
		seen = 0
	}
	for at := int64(0); at < seen; at += blockTokens {
		slot := int64(slots[kv*int64(a.TableStride)+at/blockTokens])
		block, err := floats(s, a.Pool+cuda.Ptr(2*slot*2*blockTokens*d), 2*blockTokens*d)
		if err != nil {
			return err
		}
		n := min(blockTokens, seen-at) * d
		attend(&sum, q, block[:n], block[blockTokens*d:blockTokens*d+n], float64(a.Scale))
	}
	want := make([]float64, d)
	sum.Result(want)
	got, err := halves(s, a.Out+cuda.Ptr(2*(token*a.OutTokenStride+head*a.OutHeadStride)), d)
	if err != nil {
		return err
	}
	return near(fmt.Sprintf("head %d, token %d", head, token), got, want)
}
