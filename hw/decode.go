package hw

import (
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// newDense and newSparse price one KV token of one layer, over all KV heads.
func newDense(p *Profile, m *llm.Model) memoryBound {
	k := newDecode(p, m, p.DenseDecode)
	if g := p.grid(GridDecode, KVType(m)); g != nil {
		k.grid, k.wide = newLattice(g), float64(m.HeadDim)/gridHead
	}
	return k
}

// gridHead is the head size of grids of decode attention. For another head size, list lengths are
// scaled so that the bytes are the same.
const gridHead = 128

// KVType returns the type of a model's KV, as grids and rows name it.
func KVType(m *llm.Model) string {
	if m.KVBytesEach == 1 {
		return "fp8"
	}
	return "bf16"
}

func newSparse(p *Profile, m *llm.Model) memoryBound { return newDecode(p, m, p.SparseDecode) }

func newDecode(p *Profile, m *llm.Model, s Stream) memoryBound {
	bytes := float64(m.LayerKVBytesPerToken())
	return newMemoryBound(p, m, s, bytes, func(w *sim.Work) int64 { return w.DecodeTokens })
}
