package hw

import (
	"math"

	"github.com/sparseserve/sparseserve/sim"
)

// stream is a kernel bound by HBM bytes: decode attention over whole contexts
// or over selected blocks, and the scoring of block metadata. A list is what
// one KV head of one request attends to, or chooses from.
//
//	t = max(floor, launch + bytes/rate + g splits merge + (waves-1) wave),
//	at least max(FLOPs/peak, bytes/HBM)
//
// with g query heads a KV head. Blocks of prefixes that decodes share are read from HBM once, as
// CTAs of all their requests pass them at about the same time, and from the L2 by all. HBM and L2
// overlap in part:
//
//	bytes/rate -> sqrt(((bytes - again)/rate)^2 + (bytes/L2)^2), at most bytes/rate
//
// Scoring adds
//
//	search, of lists of more than 128 blocks
//	sqrt(2 lists/ctas) unclustered, of more than ctas/2 lists
//
// as its kernel (cuda/select.cu) ranks up to 128 scores at once and searches more for the least one
// chosen, and clusters of two CTAs and more share a list while all fit: without, the CTAs of a list
// meet in the L2 cache, and its top-k waits for those of other lists. The root is empirical. The
// decode kernel splits lists, so that short batches fill the card, and merges the splits of a list
// one after another; where it has figures of waves, its CTAs come in waves (waves.go), and a list
// that is split at all costs one merge a query head, whose warps read its parts together. Whole
// contexts of any lengths are shared among its CTAs equally, so that their sum counts and not the
// longest of them. A term whose figure a profile does not give is 0.
type memoryBound struct {
	peak                peak
	launch, floor, rate float64
	l2                  float64 // 0: not known, all bytes come from HBM
	merge, ctas, wave   float64
	search, unclustered float64
	largest             float64 // bytes measured; 0 when not known
	heads, group        float64 // KV heads; query heads of each
	bytesEach           float64 // HBM bytes per item, all KV heads
	flopsEach           float64 // FLOPs per item
	items               func(*sim.Work) int64

	grid *lattice // of lists, tokens and queries; nil: launch + bytes/rate
	wide float64  // of a head, in those of the grid
}

// splitTokens is the least of a list for a CTA: four warps, each a block of 32 tokens.
const splitTokens = ctaWarps * warpTokens

// newMemoryBound prices items (tokens or blocks) of the given bytes, each with 4 d FLOPs a
// query head.
func newMemoryBound(p *Profile, m *Model, s Stream, bytesEach float64,
	items func(*sim.Work) int64) memoryBound {
	return memoryBound{
		peak: p.peak(), launch: s.Launch.SI(), floor: s.Floor.optional(), rate: s.Rate.SI(),
		l2:    s.L2Rate.optional(),
		merge: s.Merge.optional(), ctas: s.CTAs.optional(), wave: s.Wave.optional(),
		search: s.Search.optional(), unclustered: s.Unclustered.optional(),
		largest: s.Largest.optional(),
		heads:   float64(m.KVHeads), group: float64(m.QHeads / m.KVHeads),
		bytesEach: bytesEach, flopsEach: 4 * float64(m.QHeads*m.HeadDim), items: items,
	}
}

// Seconds implements Cost.
func (k *memoryBound) Seconds(w *sim.Work) (s float64, beyond bool) {
	return k.verify(float64(k.items(w)), float64(w.RereadTokens), float64(w.Decodes),
		float64(1+w.Drafts))
}

// of returns the time of n items, summed over requests, and whether they are more than measured.
func (k *memoryBound) of(n, requests float64) (t float64, outside bool) {
	return k.verify(n, 0, requests, 1)
}

// verify is the same with some of the items read again, and some queries of each request, which
// read its KV together: FLOPs and rows to merge are those of each, bytes are not.
func (k *memoryBound) verify(n, again, requests, queries float64) (t float64, outside bool) {
	if n <= 0 {
		return 0, false
	}
	requests = max(requests, 1)
	lists, length, bytes := requests*k.heads, n/requests, n*k.bytesEach
	t, once := k.launch+bytes/k.rate, bytes
	if k.grid != nil {
		t, _ = k.grid.seconds(Sizes{lists, length * k.wide, k.group})
		if queries > 1 {
			more, _ := k.grid.seconds(Sizes{lists, length * k.wide, k.group * queries})
			t = max(t, more)
		}
	}
	if again > 0 && k.l2 > 0 {
		once -= again * k.bytesEach
		t -= bytes/k.rate - SharedRead(bytes, once, k.rate, k.l2)
	}
	switch {
	case k.grid != nil:
	case k.unclustered > 0:
		t += ScoringSearches(length)*k.search + UnclusteredScoring(k.ctas, lists)*k.unclustered
	case k.wave > 0:
		w := DecodeWavesOf(k.ctas, lists, length)
		t += (w.Waves-1)*k.wave + k.group*queries*w.Merged()*k.merge
	default:
		t += k.group * queries * ListSplits(k.ctas, lists, length) * k.merge
	}
	t = max(t, k.floor, k.peak.floor(n*queries*k.flopsEach, once))
	return t, k.largest > 0 && bytes > k.largest
}

// SharedRead returns the seconds of reading some bytes of which so many are different ones, at the
// rates of HBM and of the L2.
func SharedRead(bytes, once, rate, l2 float64) float64 {
	return min(math.Hypot(once/rate, bytes/l2), bytes/rate)
}

// ListSplits returns into how many parts the decode kernel splits each of some
// lists of so many tokens, with ctas of them at once on the card.
func ListSplits(ctas, lists, tokens float64) float64 {
	return max(1, min(math.Ceil(tokens/splitTokens), math.Floor(ctas/lists)))
}
