package hw

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
)

// allClasses is allPairs of the models that are not plain, some in FP8 or in 16 bits.
func allClasses(t *testing.T, f func(t *rapid.T, p *Profile, m *Model)) {
	t.Helper()
	pairs(t, func(m *Model) bool { return !m.Plain() }, func(t *rapid.T, p *Profile, m *Model) {
		other := *m
		other.WeightBytesEach = rapid.IntRange(1, 2).Draw(t, "weight bytes")
		if m.KVRank%128 == 0 {
			other.KVBytesEach = rapid.IntRange(1, 2).Draw(t, "KV bytes")
		}
		f(t, p, &other)
	})
}

// drawDense draws the work of a batch whose decodes attend as the model does.
func drawDense(t *rapid.T, m *Model) sim.Work {
	w := drawWork(t)
	w.Sparse, w.ScoredBlocks = false, 0
	if w.Decodes > 0 {
		context := w.DecodeTokens / int64(w.Decodes)
		w.BoundedTokens = int64(w.Decodes) * min(context, int64(m.BoundTokens()))
	}
	return w
}

// pairsWithin counts the pairs of query and key of a chunk whose queries attend to so many tokens
// at most, by integrating over its queries in steps.
func pairsWithin(s sim.Span, most float64) (pairs float64) {
	const steps = 4096
	each := float64(s.Query) / steps
	for i := range steps {
		pairs += each * math.Min(most, float64(s.Prefix)+each*(float64(i)+0.5))
	}
	return pairs
}

// classPhysics returns the least seconds of a layer, counted from the shape alone.
func classPhysics(p *Profile, m *Model, layer int, w *sim.Work) float64 {
	h, heads, n := float64(m.Hidden), float64(m.QHeads), float64(w.Tokens)
	var weights, narrow float64 // weights of all tokens, and the bytes of experts that are touched
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
		touched := e * (1 - math.Pow(1-k/e, n))
		each := m.ExpertBytesEach
		if each == 0 {
			each = float64(m.WeightBytesEach)
		}
		narrow = touched * expert * each
		weights += float64(m.SharedExperts) * expert
		weights += k * expert // of FLOPs; their bytes are in narrow
		narrow -= k * expert * float64(m.WeightBytesEach)
	}
	fp8 := math.Max(p.GPU.PeakFP16.SI(), p.GPU.PeakFP8.SI())
	peak := p.GPU.PeakFP16.SI()
	if m.WeightBytesEach == 1 {
		peak = fp8
	}
	if w.Tokens == 0 {
		weights = 0
	}
	seconds := 2 * weights * n / peak
	bytes := weights*float64(m.WeightBytesEach) + narrow + keys + attends*row
	flops := attends * up
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
	allClasses(t, func(t *rapid.T, p *Profile, m *Model) {
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

func TestLaw11MonotoneClasses(t *testing.T) {
	allClasses(t, func(t *rapid.T, p *Profile, m *Model) {
		d := classDevice(t, p, m)
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
		if b.linears < a.linears || b.prefill < a.prefill || b.index < a.index || b.choice < a.choice ||
			b.dense < a.dense || b.sparse < a.sparse {
			t.Fatalf("%s, %s: %+v costs %+v, but %+v costs %+v", p.Name, m.Name, w, a, more, b)
		}
	})
}

func classDevice(t fataler, p *Profile, m *Model) *Device {
	t.Helper()
	d, err := NewDevice(p, m, DeviceOptions{BlockTokens: 64})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Experts cost no less than an FFN as wide as those of one token, and no more than one as wide as
// all of them, as far as more tokens of a measured GEMM cost less each: on an A100 some do not, by
// 4 %.
func TestExpertsBetweenActiveAndTotal(t *testing.T) {
	pairs(t, (*Model).IsMixture, func(t *rapid.T, p *Profile, m *Model) {
		e := newExperts(p, m)
		n := float64(logInt(t, 1<<16, "tokens"))
		got, _ := e.of(n)
		got -= e.launch
		active := float64(m.ExpertsPerToken) * e.each.beyond(n)
		total := float64(m.Experts) * e.each.beyond(n)
		if got < active*(1-0.05) || got > total*(1+1e-9) {
			t.Fatalf("%s, %s: %g tokens take %gs, an FFN of the active experts %gs, of all %gs", p.Name,
				m.Name, n, got, active, total)
		}
	})
}

// Weights of FP8 take from half the time of 16 bits to all of it, the less the more bytes bind;
// without FP8 arithmetic many tokens take as long as in 16 bits.
func TestNarrowWeights(t *testing.T) {
	pairs(t, func(*Model) bool { return true }, func(t *rapid.T, p *Profile, m *Model) {
		n := float64(logInt(t, 1<<16, "tokens"))
		eight, sixteen := newGEMMOf(p, m, 1e9, 1), newGEMMOf(p, m, 1e9, 2)
		a, b := eight.beyond(n), sixteen.beyond(n)
		least := min(0.5, p.GPU.PeakFP16.SI()/p.peakFP8())
		if a < b*least*(1-1e-9) || a > b*(1+1e-9) {
			t.Fatalf("%s: %g tokens in FP8 %gs, in 16 bits %gs", p.Name, n, a, b)
		}
		if !p.GPU.PeakFP8.Set() && n > 30000 && a < 0.99*b {
			t.Fatalf("%s has no FP8 arithmetic: %g tokens take %gs, in 16 bits %gs", p.Name, n, a, b)
		}
	})
}

// A latent of one head with as many bytes as its key and value is attended to as they are, but for
// the rows that the tensor cores add: both wait for the same bytes.
func TestLatentOfOneHead(t *testing.T) {
	for _, card := range CardNames() {
		p := mustProfile(t, card)
		p.DenseDecode.Merge = Figure{}
		plain := &Model{Hidden: 4096, QHeads: 1, KVHeads: 1, HeadDim: 128, FFN: 4096, WeightBytesEach: 2,
			KVBytesEach: 2}
		latent := *plain
		latent.Latent = Latent{KVRank: 256, NopeDim: 128, ValueDim: 128}
		a, b := newDense(p, plain), newLatentDecode(p, &latent, p.DenseDecode)
		b.computed = b.flops
		for n := 1.0; n < 1e8; n *= 7 {
			want, _ := a.of(n, 1)
			if got, _ := b.of(n); math.Abs(got/want-1) > 1e-12 {
				t.Errorf("%s: %g tokens take %gs over latents, %gs over keys and values", card, n, got,
					want)
			}
		}
	}
}

// FlashMLA publishes for an H800, whose tensor cores and HBM are an H100's, 3000 GB/s where bytes
// bind and 660 TFLOP/s where FLOPs do (deepseek-ai/FlashMLA, README, 2025-04-22): the price of
// dense attention over latents is within a fifth of either.
func TestLatentsAgainstFlashMLA(t *testing.T) {
	p, err := Load("h100-80gb", "vllm-0.15", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := mustModel(t, "deepseek-v3")
	const n = 128 * 8192
	l := newLatentDecode(p, m, p.DenseDecode)
	s, _ := l.of(n)
	if got := n * l.flops / s / 1e12; got < 528 || got > 792 {
		t.Errorf("128 heads: %.0f TFLOP/s, published 660", got)
	}
	few, err := m.Shard(8)
	if err != nil {
		t.Fatal(err)
	}
	l = newLatentDecode(p, &few, p.DenseDecode)
	s, _ = l.of(n)
	if got := n * l.row / s / 1e9; got < 2400 || got > 3600 {
		t.Errorf("16 heads: %.0f GB/s, published 3000", got)
	}
}

// Windows and selections that no context is longer than change nothing, and beyond them decodes
// cost no more with the context, scores of the selection apart.
func TestBoundsOfAttention(t *testing.T) {
	allClasses(t, func(t *rapid.T, p *Profile, m *Model) {
		if m.BoundTokens() == 0 {
			return
		}
		free := *m
		free.WindowTokens, free.WindowPattern = 0, ""
		d := classDevice(t, p, m)
		layer := rapid.IntRange(0, m.Layers-1).Draw(t, "layer")
		c := d.at(layer)
		at := func(context int64, spans ...sim.Span) layerCost {
			w := sim.Work{Tokens: 8, Decodes: 8, DecodeTokens: 8 * context,
				BoundedTokens: 8 * min(context, int64(m.BoundTokens())), Prefill: spans}
			return *c.layer(&w)
		}
		long := int64(m.BoundTokens()) + logInt(t, 1<<20, "longer")
		if a, b := at(long), at(2*long); c.bounded && (a.dense != b.dense || a.sparse != b.sparse) {
			t.Fatalf("%s, layer %d: %+v at %d tokens, %+v at twice as many", m.Name, layer, a, long, b)
		}
		if m.IsIndexed() {
			return
		}
		short := rapid.IntRange(1, m.WindowTokens).Draw(t, "short")
		query := rapid.IntRange(1, short).Draw(t, "query")
		if short-query+queryTile > m.WindowTokens { // the kernel's tile is beyond the window
			query = short
		}
		got := at(int64(short), sim.Span{Query: query, Prefix: short - query})
		w := sim.Work{Tokens: 8, Decodes: 8, DecodeTokens: 8 * int64(short),
			Prefill: []sim.Span{{Query: query, Prefix: short - query}}}
		var want layerCost
		if other := classDevice(t, p, &free); other.classes != nil {
			want = *other.at(layer).layer(&w)
		} else {
			want = *other.costs.layer(&w)
		}
		if got.dense != want.dense || math.Abs(float64(got.prefill-want.prefill)) > 1 {
			t.Fatalf("%s: %+v within the window, without one %+v", m.Name, got, want)
		}
	})
}

// A step of layers priced at once takes as long as one of layers priced one by one, and its classes
// add up: a model whose layers differ takes the sum of each class.
func TestRepeatOfClasses(t *testing.T) {
	p := mustProfile(t, "h200")
	for _, name := range []string{"deepseek-v3.2", "glm-5.2", "gpt-oss-20b", "mixtral-8x7b"} {
		m := mustModel(t, name)
		w := sim.Work{Tokens: 64, Decodes: 64, DecodeTokens: 64 * 9000,
			BoundedTokens: 64 * int64(min(9000, m.BoundTokens()))}
		one, all := classDevice(t, p, m), classDevice(t, p, m)
		a := runStep(t, one, &sim.Step{Sampled: 64}, m.Layers, &w, 0, 0)
		if err := all.Begin(&sim.Step{Sampled: 64}); err != nil {
			t.Fatal(err)
		}
		if err := all.Repeat(0, m.Layers, &w); err != nil {
			t.Fatal(err)
		}
		b, err := all.Finish()
		if err != nil || a.Elapsed != b.Elapsed {
			t.Errorf("%s: one by one %v, at once %v, %v", name, a.Elapsed, b.Elapsed, err)
		}
		sum, counted := 0.0, map[string]int{}
		for layer := range m.Layers {
			class := fmt.Sprint(one.at(layer).class)
			counted[class]++
			sum += one.at(layer).layer(&w).all() + one.overhead.of(&w).Seconds()
		}
		phases := a.Phases
		if got := (phases.Sum() - phases.Head - phases.Host).Seconds(); math.Abs(got/sum-1) > 1e-6 {
			t.Errorf("%s: layers take %gs, their classes %v %gs", name, got, counted, sum)
		}
	}
}
