package cost

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// memoryBound models a kernel bound by HBM bytes: decode attention over whole contexts or selected
// blocks, and scoring of block metadata. A list holds the items that one KV head of one request
// attends to or scores.
//
//	t = max(floor, launch + bytes/rate + g splits merge),
//	at least max(FLOPs/peak, bytes/HBM)
//
// with g query heads per KV head. Blocks of a prefix that decodes share are read from HBM once,
// because the CTAs of all requests read them at about the same time. All requests read them from
// L2. HBM and L2 reads overlap in part:
//
//	bytes/rate -> sqrt(((bytes - again)/rate)^2 + (bytes/L2)^2), at most bytes/rate
//
// The decode kernel splits lists so that small batches fill the card, and merges the splits of a
// list in sequence. Whole contexts are divided equally among the CTAs, so the time depends on the
// sum of their lengths, not on the longest. A figure that the profile does not give counts as 0.
type memoryBound struct {
	peak                peak
	launch, floor, rate float64
	l2                  float64 // 0: unknown, all bytes come from HBM
	merge, ctas         float64
	heads, group        float64 // KV heads; query heads per KV head
	bytesEach           float64 // HBM bytes per item, all KV heads
	flopsEach           float64 // FLOPs per item
	items               func(*sim.Work) int64

	grid *lattice // by lists, tokens and queries; nil: launch + bytes/rate
	wide float64  // head size / head size of the grid
}

// ctasPerSM is the number of CTAs of decode and scoring kernels that an SM runs at once.
const ctasPerSM = 2

// splitTokens is the minimum tokens of a list per CTA: four warps with a block of 32 tokens each.
const splitTokens = 4 * 32

// newMemoryBound prices items (tokens or blocks) of bytesEach bytes and 4 d FLOPs per query head.
func newMemoryBound(p *hw.Profile, m *llm.Model, s hw.Stream, bytesEach float64,
	items func(*sim.Work) int64) memoryBound {
	return memoryBound{
		peak: peakOf(p), launch: s.Launch.SI(), floor: s.Floor.Optional(), rate: s.Rate.SI(),
		l2:    s.L2Rate.Optional(),
		merge: s.Merge.Optional(), ctas: ctasPerSM * p.GPU.SMs.SI(),
		heads: float64(m.KVHeads), group: float64(m.QHeads / m.KVHeads),
		bytesEach: bytesEach, flopsEach: 4 * float64(m.QHeads*m.HeadDim), items: items,
	}
}

// Seconds implements Cost.
func (k *memoryBound) Seconds(w *sim.Work) (s float64, beyond bool) {
	return k.verify(float64(k.items(w)), float64(w.RereadTokens), float64(w.Decodes),
		float64(1+w.Drafts)), false
}

// of returns the time of n items, summed over requests.
func (k *memoryBound) of(n, requests float64) float64 {
	return k.verify(n, 0, requests, 1)
}

// verify is like of, with again items read again from L2 and several queries per request. The
// queries of a request read its KV together: FLOPs and merges scale with queries, bytes do not.
func (k *memoryBound) verify(n, again, requests, queries float64) float64 {
	if n <= 0 {
		return 0
	}
	requests = max(requests, 1)
	lists, length, bytes := requests*k.heads, n/requests, n*k.bytesEach
	t, once := k.launch+bytes/k.rate, bytes
	if k.grid != nil {
		t, _ = k.grid.seconds(hw.Sizes{lists, length * k.wide, k.group})
		if queries > 1 {
			more, _ := k.grid.seconds(hw.Sizes{lists, length * k.wide, k.group * queries})
			t = max(t, more)
		}
	}
	if again > 0 && k.l2 > 0 {
		once -= again * k.bytesEach
		t -= bytes/k.rate - SharedRead(bytes, once, k.rate, k.l2)
	}
	if k.grid == nil {
		t += k.group * queries * ListSplits(k.ctas, lists, length) * k.merge
	}
	return max(t, k.floor, k.peak.floor(n*queries*k.flopsEach, once))
}

// SharedRead returns the seconds to read bytes bytes, of which once bytes are distinct, at the
// given rates of HBM and L2.
func SharedRead(bytes, once, rate, l2 float64) float64 {
	return min(math.Hypot(once/rate, bytes/l2), bytes/rate)
}

// ListSplits returns the number of parts into which the decode kernel splits each list of the given
// tokens, with ctas concurrent CTAs on the card.
func ListSplits(ctas, lists, tokens float64) float64 {
	return max(1, min(math.Ceil(tokens/splitTokens), math.Floor(ctas/lists)))
}

// newDense and newSparse price one KV token of one layer, over all KV heads.
func newDense(p *hw.Profile, m *llm.Model) memoryBound {
	k := newDecode(p, m, p.DenseDecode)
	if g := p.GridOf(hw.GridDecode, m.KVType()); g != nil {
		k.grid, k.wide = newLattice(g), float64(m.HeadDim)/gridHead
	}
	return k
}

// gridHead is the head size of grids of decode attention. For another head size, list lengths are
// scaled so that the bytes are the same.
const gridHead = 128

func newSparse(p *hw.Profile, m *llm.Model) memoryBound { return newDecode(p, m, p.SparseDecode) }

func newDecode(p *hw.Profile, m *llm.Model, s hw.Stream) memoryBound {
	bytes := float64(m.LayerKVBytesPerToken())
	return newMemoryBound(p, m, s, bytes, func(w *sim.Work) int64 { return w.DecodeTokens })
}
