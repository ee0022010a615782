package cost

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// allClasses is allPairs of all models, some in FP8, scaled by matrix or by blocks, or in 16 bits,
// some with experts in four bits or that are spread.
func allClasses(t *testing.T, f func(t *rapid.T, p *hw.Profile, m *llm.Model)) {
	t.Helper()
	pairs(t, func(m *llm.Model) bool { return true }, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		whole := *m
		if whole.IsMixture() {
			whole.ExpertRanks = 1 << rapid.IntRange(0, 3).Draw(t, "expert ranks")
		}
		other := *drawShard(t, p, &whole)
		other.WeightBytesEach = float64(rapid.IntRange(1, 2).Draw(t, "weight bytes"))
		other.WeightBlock = 128 * rapid.IntRange(0, 1).Draw(t, "scales of blocks")
		if m.KVRank%128 == 0 {
			other.KVBytesEach = rapid.IntRange(1, 2).Draw(t, "KV bytes")
		}
		if m.IsMixture() {
			other.ExpertBytesEach = rapid.SampledFrom([]float64{0, 1, llm.MXFP4Bytes, 0.5625}).Draw(t,
				"expert bytes")
		}
		f(t, p, &other)
	})
}

// drawDense draws the work of a batch whose decodes attend as the model does.
func drawDense(t *rapid.T, m *llm.Model) sim.Work {
	w := drawWork(t)
	w.Sparse, w.ScoredBlocks = false, 0
	if w.Decodes > 0 {
		context := w.DecodeTokens / int64(w.Decodes)
		w.BoundedTokens = int64(w.Decodes) * min(context, int64(m.BoundTokens()))
	}
	return w
}

// pairsWithin counts the pairs of query and key of a chunk whose queries attend to at most the
// given number of tokens, by integrating over its queries in steps.
func pairsWithin(s sim.Span, most float64) (pairs float64) {
	const steps = 4096
	each := float64(s.Query) / steps
	for i := range steps {
		pairs += each * math.Min(most, float64(s.Prefix)+each*(float64(i)+0.5))
	}
	return pairs
}

// classPhysics returns the least seconds of a layer, counted from the shape alone.
func classPhysics(p *hw.Profile, m *llm.Model, layer int, w *sim.Work) float64 {
	h, heads, n := float64(m.Hidden), float64(m.QHeads), float64(w.Tokens)
	var weights, narrow float64 // weights of all tokens, and the bytes of experts that are touched
	var experts float64         // seconds of their FLOPs
	most := math.Inf(1)
	pair, row := 4*heads*float64(m.HeadDim), 2*float64(m.KVHeads*m.HeadDim*m.KVBytesEach)
	up, attends := 0.0, float64(w.DecodeTokens)
	if m.KVRank > 0 {
		from := float64(m.QRank)
		weights = h*(from+float64(m.KVRank+m.RopeDim)) + from*heads*float64(m.NopeDim+m.RopeDim) +
			float64(m.KVRank)*heads*float64(m.NopeDim+m.ValueDim) + heads*float64(m.ValueDim)*h
		row = float64((m.KVRank + m.RopeDim) * m.KVBytesEach)
		pair = 2 * heads * float64(m.NopeDim+m.RopeDim+m.ValueDim) // decompressed is the least
		up = 2 * float64(2*m.KVRank+m.RopeDim) * heads
	} else {
		weights = h * float64(m.HeadDim) * (2*heads + 2*float64(m.KVHeads))
		up = pair
	}
	keys := 0.0
	if m.IndexTopK > 0 {
		most, attends = float64(m.IndexTopK), float64(w.BoundedTokens)
		if !m.SharesIndex(layer) {
			keys = float64(w.DecodeTokens) * float64(m.IndexKeyBytes)
		}
	}
	if m.WindowTokens > 0 && m.WindowPattern[layer%len(m.WindowPattern)] == 'w' {
		most, attends = float64(m.WindowTokens), float64(w.BoundedTokens)
	}
	if flops := 3 * h * float64(m.FFN); m.Experts == 0 || layer < m.DenseLayers {
		weights += flops
	} else if w.Tokens > 0 {
		expert := 3 * h * float64(m.ExpertFFN)
		k, e := float64(m.ExpertsPerToken), float64(m.Experts)
		ranks := float64(m.Spread()) // each has as many of the experts, and of the tokens' choices
		touched := e / ranks * (1 - math.Pow(1-k/e, n))
		each := m.ExpertBytesEach
		if each == 0 {
			each = m.WeightBytesEach
		}
		narrow = touched * expert * each
		weights += float64(m.SharedExperts) * expert
		experts = 2 * k / ranks * expert * n / p.GPU.PeakOf(expertType(m))
	}
	fp8 := math.Max(p.GPU.PeakFP16.SI(), p.GPU.PeakFP8.SI())
	peak := p.GPU.PeakFP16.SI()
	if m.WeightBytesEach == 1 {
		peak = fp8
	}
	if w.Tokens == 0 {
		weights = 0
	}
	seconds := 2*weights*n/peak + experts
	bytes := weights*m.WeightBytesEach + narrow + keys + attends*row
	if math.IsInf(most, 1) {
		bytes -= float64(w.RereadTokens) * row
	}
	flops := attends * up * float64(1+w.Drafts)
	for _, s := range w.Prefill {
		flops += pair * pairsWithin(s, most) * (1 - 1e-3) // of the steps
		bytes += row * math.Min(most, float64(s.Query+s.Prefix))
	}
	seconds += flops / p.GPU.PeakFP16.SI()
	return math.Max(seconds, bytes/p.GPU.HBMBandwidth.SI())
}

func (c *layerCost) all() float64 {
	return (c.linears + c.prefill + c.index + c.choice + c.dense + c.sparse + c.scoring).Seconds()
}

func TestLaw10PhysicsClasses(t *testing.T) {
	allClasses(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		d := classDevice(t, p, m)
		w := drawDense(t, m)
		layer := rapid.IntRange(0, m.Layers-1).Draw(t, "layer")
		got := d.at(layer).layer(&w).all()
		if least := classPhysics(p, m, layer, &w); got < least*(1-1e-9) {
			t.Fatalf("%s, %s, layer %d: %+v takes %gs, physics allow %gs", p.Name, m.Name, layer, w, got,
				least)
		}
	})
}

// Linears are made monotone first: measured ones may take less for more tokens.
func TestLaw11MonotoneClasses(t *testing.T) {
	allClasses(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		d := classDevice(t, neverFalling(p), m)
		w := drawDense(t, m)
		more := w
		more.Prefill = append([]sim.Span(nil), w.Prefill...)
		more.Tokens += rapid.IntRange(0, 4096).Draw(t, "more tokens")
		more.DecodeTokens += logInt(t, 1<<24, "more kv") - 1
		more.BoundedTokens += min(more.DecodeTokens-w.DecodeTokens,
			rapid.Int64Range(0, 4096).Draw(t, "more bounded"))
		for i := range more.Prefill {
			more.Prefill[i].Query += rapid.IntRange(0, 4096).Draw(t, "more query")
			more.Prefill[i].Prefix += rapid.IntRange(0, 65536).Draw(t, "more prefix")
		}
		c := d.at(rapid.IntRange(0, m.Layers-1).Draw(t, "layer"))
		a := *c.layer(&w)
		b := *c.layer(&more)
		prefill := des.Time(0.999 * float64(a.prefill)) // rates are rounded (checkPrefill)
		if b.linears < a.linears || b.prefill < prefill || b.index < a.index || b.choice < a.choice ||
			b.dense < a.dense || b.sparse < a.sparse {
			t.Fatalf("%s, %s: %+v costs %+v, but %+v costs %+v", p.Name, m.Name, w, a, more, b)
		}
	})
}

func classDevice(t fataler, p *hw.Profile, m *llm.Model) *Device {
	t.Helper()
	d, err := NewDevice(p, m, DeviceOptions{BlockTokens: 64})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
