package calibrate

import (
	"math"
	"math/rand/v2"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// decodeBatch is a batch with KV blocks in random slots. Only shared blocks use a slot twice.
type decodeBatch struct {
	args  cuda.DecodeArgs
	units int64
	table []int32   // [units][stride]
	lists [][]int32 // logical blocks of each unit
	slots int64     // of the pool
}

// decodeSpec describes the attention of a batch.
type decodeSpec struct {
	contexts []int64 // of each request, in tokens of whole blocks
	chosen   []int64 // blocks of each unit's list; nil: all of its context
	shared   int64   // blocks that all contexts begin with, in the same slots
}

// equalTo returns n times a value.
func equalTo(n, value int64) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = value
	}
	return all
}

// newDecodeBatch chooses the lists of a batch and the slots of its blocks.
func newDecodeBatch(r *rand.Rand, m *llm.Model, spec decodeSpec) *decodeBatch {
	d, heads, batch := int64(m.HeadDim), int64(m.KVHeads), int64(len(spec.contexts))
	b := &decodeBatch{units: batch * heads}
	stride, most := int64(0), int64(0) // blocks of the longest context; of the longest list
	for u := range b.units {
		blocks := spec.contexts[u/heads] / blockTokens
		picked := counted[int32](blocks)
		if spec.chosen != nil {
			for i, block := range r.Perm(int(blocks))[:spec.chosen[u]] {
				picked[i] = int32(block)
			}
			picked = picked[:spec.chosen[u]]
		}
		b.lists = append(b.lists, picked)
		if b.slots += int64(len(picked)); u >= heads {
			b.slots -= spec.shared
		}
		stride, most = max(stride, blocks), max(most, int64(len(picked)))
	}
	b.args = cuda.DecodeArgs{
		Batch: int32(batch), HeadsQ: int32(m.QHeads), HeadsKV: int32(heads), HeadDim: int32(d),
		BlockTokens: blockTokens, TableStride: int32(stride), ListStride: int32(most),
		MaxBlocks: int32(most), Scale: float32(1 / math.Sqrt(float64(d))),
	}
	b.table = make([]int32, b.units*stride)
	free := r.Perm(int(b.slots))
	for u, list := range b.lists {
		for _, block := range list {
			if first := int64(u) % heads; int64(u) != first && int64(block) < spec.shared {
				b.table[int64(u)*stride+int64(block)] = int32(b.slot(first, block))
				continue
			}
			b.table[int64(u)*stride+int64(block)], free = int32(free[0]), free[1:]
		}
	}
	return b
}

// slot returns the slot of a unit's block in the pool.
func (b *decodeBatch) slot(unit int64, block int32) int64 {
	return int64(b.table[unit*int64(b.args.TableStride)+int64(block)])
}

// selectedFrom is the context, in tokens, from which budgets are selected.
const selectedFrom = 32768

// decode prepares decode attention over a batch.
func (g *gpuRun) decode(m *llm.Model, spec decodeSpec) *decodeBatch {
	b := newDecodeBatch(g.r, m, spec)
	a, queries := &b.args, int64(len(spec.contexts)*m.QHeads*m.HeadDim)
	contexts := make([]int32, len(spec.contexts))
	for i, n := range spec.contexts {
		contexts[i] = int32(n)
	}
	a.Pool, a.Q = g.random(b.slots*2*blockTokens*int64(m.HeadDim)), g.random(queries)
	a.Out = g.poisoned(2 * queries)
	a.Table, a.Context = upload(g, b.table), upload(g, contexts)
	if spec.chosen != nil {
		order, count := make([]int32, b.units*int64(a.ListStride)), make([]int32, b.units)
		for u, picked := range b.lists {
			count[u] = int32(len(picked))
			copy(order[u*int(a.ListStride):], picked)
		}
		a.List, a.Count = upload(g, order), upload(g, count)
	}
	a.Workspace = g.workspace(a)
	return b
}

// checkDecode recomputes some heads of the last run, including the last request, which is the
// longest.
func (g *gpuRun) checkDecode(b *decodeBatch) {
	a := &b.args
	d, group := int64(a.HeadDim), int64(a.HeadsQ/a.HeadsKV)
	values := 2 * blockTokens * d // of a block
	for _, unit := range []int64{0, b.units - 1, g.r.Int64N(b.units)} {
		head := unit*group + g.r.Int64N(group)
		at := cuda.Ptr(2 * head * d)
		row := g.attention(a.Q+at, d, a.Scale, func(add func(k, v []float64)) {
			for _, block := range b.lists[unit] {
				kv := g.floats(a.Pool+cuda.Ptr(2*b.slot(unit, block)*values), values)
				add(kv[:values/2], kv[values/2:])
			}
		})
		g.near(a.Out+at, row, "unit %d, head %d", unit, head)
	}
}

// setupDecode prepares attention to whole contexts or to selected blocks.
func (g *gpuRun) setupDecode(p Point) *work {
	m, batch := g.model(p.Shape), p.At("batch")
	spec := decodeSpec{contexts: equalTo(batch, selectedFrom)}
	if p.Probe == probeDense {
		spec.contexts = equalTo(batch, p.At("context_tokens"))
	} else {
		spec.chosen = equalTo(batch*int64(m.KVHeads), p.At("budget_tokens")/blockTokens)
	}
	b := g.decode(m, spec)
	return g.timed(b, &b.args)
}

// timed prepares the batch's attention, in one or more launches, with its check.
func (g *gpuRun) timed(b *decodeBatch, calls ...cuda.Operation) *work {
	return &work{calls: calls, verify: func() {
		g.launch(calls...)
		g.checkDecode(b)
	}}
}
