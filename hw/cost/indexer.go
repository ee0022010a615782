package cost

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// indexer models how a layer scores all tokens of its contexts and selects the best:
//
//	decode   t = launch + search + n max(key / rate, q 2 I d / R8) + 8 q n / rate
//	prefill  t = launch + search + pairs (2 I d / R8 + 8 / rate)
//
// with n tokens of all contexts, q queries of a request, or pairs of query and key, I heads of size
// d, key the bytes of a token's key, and a float32 score that is written and read. No such kernel
// was measured. launch, search and rate are the figures of block scoring. R8 is the FP8 peak times
// the efficiency of prefill attention in FP16.
type indexer struct {
	peak         peak // of FP8
	launch, rate float64
	compute      float64 // R8, FLOP/s
	key, flops   float64 // bytes and FLOPs per token
	block        float64 // tokens per block in the server's counts
}

// scoreBytes is per token: a float32 that is written and read.
const scoreBytes = 8

func newIndexer(p *hw.Profile, m *llm.Model, blockTokens int) *indexer {
	if !m.IsIndexed() {
		return nil
	}
	x := &indexer{peak: peakOf(p), launch: p.Scoring.Launch.SI(),
		rate: p.Scoring.Rate.SI(), key: float64(m.IndexKeyBytes),
		flops: 2 * float64(m.IndexHeads*m.IndexHeadDim), block: float64(max(1, blockTokens))}
	x.peak.flops = p.GPU.PeakOf("fp8")
	x.compute = attentionRate(p) * x.peak.flops / p.GPU.PeakFP16.SI()
	return x
}

// decode returns the seconds for decodes, which score whole contexts. If the server selects blocks,
// tokens are counted from the scored blocks.
func (x *indexer) decode(w *sim.Work) float64 {
	n := x.keys(w)
	if n <= 0 {
		return 0
	}
	queries := float64(1 + w.Drafts) // of a request; they read a key together
	t := x.launch + n*math.Max(x.key/x.rate, queries*x.flops/x.compute) + n*queries*scoreBytes/x.rate
	return math.Max(t, x.peak.floor(n*queries*x.flops, n*x.key))
}

// keys returns the number of tokens that decodes score.
func (x *indexer) keys(w *sim.Work) float64 {
	if w.Sparse {
		return float64(w.ScoredBlocks) * x.block
	}
	return float64(w.DecodeTokens)
}

// prefill returns the seconds for chunks.
func (x *indexer) prefill(spans []sim.Span) (t float64) {
	for _, s := range spans {
		if s.Query <= 0 {
			continue
		}
		q := float64(s.Query)
		pairs := q*float64(s.Prefix) + q*q/2
		t += math.Max(pairs*(x.flops/x.compute+scoreBytes/x.rate),
			x.peak.floor(pairs*x.flops, (q+float64(s.Prefix))*x.key))
	}
	if t > 0 {
		t += x.launch
	}
	return t
}

// newScoring prices scoring of a block's metadata in all KV heads: two vectors for each query head.
func newScoring(p *hw.Profile, m *llm.Model) memoryBound {
	bytes := float64(int64(m.KVHeads) * m.MetaBytesPerBlock())
	return newMemoryBound(p, m, p.Scoring, bytes, func(w *sim.Work) int64 { return w.ScoredBlocks })
}
