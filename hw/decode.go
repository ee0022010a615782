package hw

import (
	"math"

	"github.com/sparseserve/sparseserve/sim"
)

// newDense and newSparse price one KV token of one layer, over all KV heads.
func newDense(p *Profile, m *Model) memoryBound {
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
func KVType(m *Model) string {
	if m.KVBytesEach == 1 {
		return "fp8"
	}
	return "bf16"
}

func newSparse(p *Profile, m *Model) memoryBound { return newDecode(p, m, p.SparseDecode) }

func newDecode(p *Profile, m *Model, s Stream) memoryBound {
	bytes := float64(m.LayerKVBytesPerToken())
	return newMemoryBound(p, m, s, bytes, func(w *sim.Work) int64 { return w.DecodeTokens })
}

// DecodeWaves is how the decode kernel launches lists of selected blocks (cuda/decode.cu). It
// splits each list into the number of CTAs that minimises
//
//	waves x (blocks of a CTA + 4)
//
// for the number of concurrent CTAs on the card.
type DecodeWaves struct {
	Splits float64 // CTAs per list
	Waves  float64
	Last   float64 // CTAs of the last wave
	Blocks float64 // of the longest CTA
}

// Constants of the kernel: warps per CTA, tokens per warp, the fixed cost of a CTA in blocks, and
// the most splits of a list.
const (
	ctaWarps   = 4
	warpTokens = 32
	splitFixed = 4
	splitMost  = 64
)

// Merged returns 1 if a list is split, so that its parts are merged, else 0.
func (w DecodeWaves) Merged() float64 {
	if w.Splits > 1 {
		return 1
	}
	return 0
}

// DecodeWavesOf splits lists of the given tokens, with ctas concurrent CTAs.
func DecodeWavesOf(ctas, lists, tokens float64) DecodeWaves {
	blocks := math.Ceil(tokens / warpTokens)
	of := func(splits float64) DecodeWaves {
		waves := math.Ceil(lists * splits / ctas)
		return DecodeWaves{splits, waves, lists*splits - (waves-1)*ctas, math.Ceil(blocks / splits)}
	}
	best := of(1)
	for splits := 2.0; splits <= splitMost && splits <= math.Ceil(blocks/ctaWarps); splits++ {
		if w := of(splits); w.Waves*(w.Blocks+splitFixed) < best.Waves*(best.Blocks+splitFixed) {
			best = w
		}
	}
	return best
}
