package calibrate

import (
	"math"
	"math/rand/v2"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
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
