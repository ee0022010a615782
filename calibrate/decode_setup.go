package calibrate

import (
	"fmt"
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/hw"
	"math"
	"math/rand/v2"
)

// decodeBatch is a batch whose KV blocks lie in random slots, each used once.
type decodeBatch struct {
	args  cuda.DecodeArgs
	units int64
	table []int32   // [units][stride]
	lists [][]int32 // logical blocks of each unit
	slots int64     // of the pool
}

// decodeSpec is what a batch attends to.
type decodeSpec struct {
	contexts []int64 // of each request, in tokens of whole blocks
	chosen   []int64 // blocks of each unit's list; nil: all of its context
}

// equalTo is n times a value.
func equalTo(n, value int64) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = value
	}
	return all
}

// layOut chooses what a batch attends to and where it lies.
func layOut(r *rand.Rand, m *hw.Model, spec decodeSpec) *decodeBatch {
	d, heads, batch := int64(m.HeadDim), int64(m.KVHeads), int64(len(spec.contexts))
	b := &decodeBatch{units: batch * heads}
	stride, most := int64(0), int64(0) // blocks of the longest context; of the longest list
	for u := range b.units {
		blocks := spec.contexts[u/heads] / blockTokens
		picked := inOrder(blocks)
		if spec.chosen != nil {
			for i, block := range r.Perm(int(blocks))[:spec.chosen[u]] {
				picked[i] = int32(block)
			}
			picked = picked[:spec.chosen[u]]
		}
		b.lists = append(b.lists, picked)
		b.slots += int64(len(picked))
		stride, most = max(stride, blocks), max(most, int64(len(picked)))
	}
	b.args = cuda.DecodeArgs{Batch: int32(batch), HeadsQ: int32(m.QHeads), HeadsKV: int32(heads), HeadDim: int32(d), BlockTokens: blockTokens,
		TableStride: int32(stride), ListStride: int32(most), MaxBlocks: int32(most), Scale: float32(1 / math.Sqrt(float64(d)))}
	b.table = make([]int32, b.units*stride)
	tabulate(r, b.table, stride, b.slots, func(row int64) []int32 { return b.lists[row] })
	return b
}

// inOrder is 0, 1, 2, ..
func inOrder(n int64) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// tabulate gives the blocks of each row of a table one of so many places each.
func tabulate(r *rand.Rand, table []int32, stride, places int64, blocks func(row int64) []int32) {
	free := r.Perm(int(places))
	for row := range int64(len(table)) / stride {
		for _, block := range blocks(row) {
			table[row*stride+int64(block)], free = int32(free[0]), free[1:]
		}
	}
}

// slot is where a block of a unit lies.
func (b *decodeBatch) slot(unit int64, block int32) int64 {
	return int64(b.table[unit*int64(b.args.TableStride)+int64(block)])
}

// contextBehind is the context that budgets are selected from, in tokens.
const contextBehind = 32768

// decodeOp readies decode attention over a batch (batch.go).
func (g *gpuBench) decodeOp(s *cuda.Session, m *hw.Model, spec decodeSpec) (*decodeBatch, error) {
	b := layOut(g.r, m, spec)
	a, d, batch := &b.args, int64(m.HeadDim), int64(len(spec.contexts))
	contexts := make([]int32, batch)
	for i, n := range spec.contexts {
		contexts[i] = int32(n)
	}
	var err error
	set := func(p *cuda.Ptr, get func() (cuda.Ptr, error)) {
		if err == nil {
			*p, err = get()
		}
	}
	set(&a.Pool, func() (cuda.Ptr, error) { return g.random(s, b.slots*2*blockTokens*d) })
	set(&a.Q, func() (cuda.Ptr, error) { return g.random(s, batch*int64(m.QHeads)*d) })
	set(&a.Out, func() (cuda.Ptr, error) { return g.poisoned(s, 2*batch*int64(m.QHeads)*d) })
	set(&a.Table, func() (cuda.Ptr, error) { return upload(g, s, b.table) })
	set(&a.Context, func() (cuda.Ptr, error) { return upload(g, s, contexts) })
	if spec.chosen != nil {
		order, count := make([]int32, b.units*int64(a.ListStride)), make([]int32, b.units)
		for u, picked := range b.lists {
			count[u] = int32(len(picked))
			copy(order[u*int(a.ListStride):], picked)
		}
		set(&a.List, func() (cuda.Ptr, error) { return upload(g, s, order) })
		set(&a.Count, func() (cuda.Ptr, error) { return upload(g, s, count) })
	}
	if err != nil {
		return nil, err
	}
	bytes, err := s.Workspace(a)
	if err != nil {
		return nil, err
	}
	a.Workspace, err = g.zeros(s, bytes)
	return b, err
}

// check computes some heads of what was just run anew, of the last request among
// them, which is the longest where they differ.
func (b *decodeBatch) check(g *gpuBench, s *cuda.Session) error {
	a := &b.args
	d, group := int64(a.HeadDim), int64(a.HeadsQ/a.HeadsKV)
	values := 2 * blockTokens * d // of a block
	for _, unit := range []int64{0, b.units - 1, g.r.Int64N(b.units)} {
		head := unit*group + g.r.Int64N(group)
		q, err := floats(s, a.Q+cuda.Ptr(2*head*d), d)
		if err != nil {
			return err
		}
		sum := reference.NewSoftmax(int(d))
		for _, block := range b.lists[unit] {
			kv, err := floats(s, a.Pool+cuda.Ptr(2*b.slot(unit, block)*values), values)
			if err != nil {
				return err
			}
			attend(&sum, q, kv[:values/2], kv[values/2:], float64(a.Scale))
		}
		want := make([]float64, d)
		sum.Result(want)
		got, err := halves(s, a.Out+cuda.Ptr(2*head*d), d)
		if err != nil {
			return err
		}
		if err := near(fmt.Sprintf("unit %d, head %d", unit, head), got, want); err != nil {
			return err
		}
	}
	return nil
}

// setupDecode readies attention to whole contexts or to selected blocks.
func (g *gpuBench) setupDecode(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	batch := p.At("batch")
	spec := decodeSpec{contexts: equalTo(batch, contextBehind)}
	if p.Probe == probeDense {
		spec.contexts = equalTo(batch, p.At("context_tokens"))
	} else {
		spec.chosen = equalTo(batch*int64(m.KVHeads), p.At("budget_tokens")/blockTokens)
	}
	b, err := g.decodeOp(s, m, spec)
	if err != nil {
		return nil, err
	}
	return b.timed(g, &b.args), nil
}

// timed is the batch's attention by one kernel or several launches, with its check.
func (b *decodeBatch) timed(g *gpuBench, calls ...cuda.Operation) *setup {
	return &setup{bench: cuda.Bench{Calls: calls, FlushL2: true}, verify: func(s *cuda.Session) error {
		for _, call := range calls {
			if err := s.Launch(call, 0); err != nil {
				return err
			}
		}
		return b.check(g, s)
	}}
}
