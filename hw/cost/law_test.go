package cost

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// allPairs runs f for every built-in card under every engine and every plain model or one rank's
// part of it, loaded once.
func allPairs(t *testing.T, f func(t *rapid.T, p *hw.Profile, m *llm.Model)) {
	t.Helper()
	pairs(t, (*llm.Model).Plain, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		f(t, p, drawShard(t, p, m))
	})
}

// drawShard draws a number of GPUs, 1, 2, 4 or 8, and returns one GPU's shard of the model. It
// returns the whole model if that number does not divide it.
func drawShard(t *rapid.T, p *hw.Profile, m *llm.Model) *llm.Model {
	ranks := 1 << rapid.IntRange(0, 3).Draw(t, "ranks")
	if shard, err := m.Shard(ranks); err == nil && CheckParallel(p, ranks) == nil {
		return &shard
	}
	return m
}

// pairs is allPairs of the models that are wanted.
func pairs(t *testing.T, want func(*llm.Model) bool,
	f func(t *rapid.T, p *hw.Profile, m *llm.Model)) {
	t.Helper()
	var cards []*hw.Profile
	var models []*llm.Model
	for _, n := range hw.CardNames() {
		for _, engine := range hw.EngineNames() {
			p, err := hw.Load(n, engine, nil)
			if err != nil {
				t.Fatal(err)
			}
			cards = append(cards, p)
		}
	}
	for _, n := range classModels {
		if m := mustModel(t, n); want(m) {
			models = append(models, m)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		f(rt, rapid.SampledFrom(cards).Draw(rt, "card"), rapid.SampledFrom(models).Draw(rt, "model"))
	})
}

// logInt draws 1 to most, each order of magnitude alike.
func logInt(t *rapid.T, most float64, label string) int64 {
	return int64(math.Exp(rapid.Float64Range(0, math.Log(most)).Draw(t, label)))
}

func drawWork(t *rapid.T) sim.Work {
	w := sim.Work{
		Decodes: int(logInt(t, 1024, "decodes")) - 1,
		Sparse:  rapid.Bool().Draw(t, "sparse"),
	}
	w.DecodeTokens = int64(w.Decodes) * logInt(t, 1<<20, "context")
	if w.Sparse {
		w.ScoredBlocks = int64(w.Decodes) * logInt(t, 1<<15, "blocks")
	} else if w.Decodes > 0 {
		w.Drafts = rapid.SampledFrom([]int{0, 0, 1, 8, 63}).Draw(t, "drafts")
		w.RereadTokens = w.DecodeTokens / int64(w.Decodes) *
			rapid.Int64Range(0, int64(w.Decodes-1)).Draw(t, "that read what another reads")
	}
	w.Tokens = w.Decodes * (1 + w.Drafts)
	for range rapid.IntRange(0, 4).Draw(t, "spans") {
		s := sim.Span{Query: int(logInt(t, 1<<20, "query")), Prefix: int(logInt(t, 1<<20, "prefix")) - 1}
		w.Prefill = append(w.Prefill, s)
		w.Tokens += s.Query
	}
	return w
}

// layerPhysics returns the least seconds of one layer's Work, counted
// independently of the cost models.
func layerPhysics(p *hw.Profile, m *llm.Model, w *sim.Work) float64 {
	var flops, bytes float64
	d := float64(m.HeadDim)
	qkv := float64(m.Hidden) * d * float64(m.QHeads+2*m.KVHeads)
	weights := qkv + float64(m.Hidden)*d*float64(m.QHeads) + 3*float64(m.Hidden)*float64(m.FFN)
	if w.Tokens > 0 {
		flops += 2 * weights * float64(w.Tokens)
		bytes += 2 * weights
	}
	tokenKV := 2 * 2 * d * float64(m.KVHeads)
	for _, s := range w.Prefill {
		q := float64(s.Query)
		flops += 4 * d * float64(m.QHeads) * (q*float64(s.Prefix) + q*q/2)
		bytes += tokenKV * (q + float64(s.Prefix))
	}
	flops += 4 * d * float64(m.QHeads) * float64(w.DecodeTokens) * float64(1+w.Drafts)
	bytes += tokenKV * float64(w.DecodeTokens-w.RereadTokens)
	bytes += tokenKV * float64(w.ScoredBlocks) // two vectors a block: as one token's K and V
	return math.Max(flops/p.GPU.PeakFP16.SI(), bytes/p.GPU.HBMBandwidth.SI())
}

func TestLaw10PhysicsLayer(t *testing.T) {
	allPairs(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		c := newCoster(p, m, &DeviceOptions{})
		w := drawWork(t)
		cost := c.layer(&w)
		got := cost.linears + cost.prefill + cost.dense + cost.sparse + cost.scoring
		if least := layerPhysics(p, m, &w); got.Seconds() < least*(1-1e-12) {
			t.Fatalf("%s, %s: %+v takes %v, physics allow %.9gs", p.Name, m.Name, w, got, least)
		}
	})
}

// The floor holds for any figures that a profile may give, not only for figures that obey it by
// themselves.
func TestLaw10PhysicsAbsurdProfile(t *testing.T) {
	absurd := func(f *hw.Figure, v float64) { f.Value = v }
	p := mustProfile(t, "a100-40gb")
	for i := range p.Linears {
		absurd(&p.Linears[i].Figure, 1e-6)
	}
	for i := range p.Pointwise {
		absurd(&p.Pointwise[i].Figure, 1e-6)
	}
	for i := range p.Prefill {
		absurd(&p.Prefill[i].Rate, 1e9)
	}
	for _, s := range []*hw.Stream{&p.DenseDecode, &p.SparseDecode, &p.Scoring} {
		absurd(&s.Rate, 1e9)
		absurd(&s.Launch, 1e-6)
	}
	p.DenseDecode.L2Rate = p.DenseDecode.Rate
	p.DenseDecode.Merge = hw.Figure{}
	for i := range p.Load.Flash {
		absurd(&p.Load.Flash[i].Figure, 1e9)
	}
	absurd(&p.Save.GPURate, 1e9)
	absurd(&p.Link.H2D, 1e9)
	absurd(&p.Link.D2H, 1e9)
	models := []*llm.Model{mustModel(t, "lwm-7b"), mustModel(t, "llama3-8b"), mustModel(t, "qwen2-7b")}
	rapid.Check(t, func(t *rapid.T) {
		m := drawShard(t, p, rapid.SampledFrom(models).Draw(t, "model"))
		w := drawWork(t)
		c := newCoster(p, m, &DeviceOptions{})
		cost := c.layer(&w)
		got := cost.linears + cost.prefill + cost.dense + cost.sparse + cost.scoring
		if least := layerPhysics(p, m, &w); got.Seconds() < least*(1-1e-12) {
			t.Fatalf("%+v takes %v, physics allow %.9gs", w, got, least)
		}
		linkPhysics(t, p)
	})
}

func TestLaw10PhysicsLink(t *testing.T) {
	allPairs(t, func(t *rapid.T, p *hw.Profile, _ *llm.Model) { linkPhysics(t, p) })
}

// linkPhysics checks each engine against the link's achieved and nominal speed.
func linkPhysics(t *rapid.T, p *hw.Profile) {
	n, b, pool := logInt(t, 1e8, "blocks"), logInt(t, 1<<20, "block bytes"), logInt(t, 1<<42, "pool")
	bytes := float64(n) * float64(b)
	for _, engine := range LoadEngines() {
		l, err := newLoader(p, engine)
		if err != nil {
			t.Fatal(err)
		}
		l.over(pool)
		if s := l.seconds(n, b); s < bytes/math.Min(p.Link.H2D.SI(), p.Link.Nominal.SI()) {
			t.Fatalf("%s loads %d x %d bytes in %gs", engine, n, b, s)
		}
	}
	for _, engine := range SaveEngines() {
		s, err := newSaver(p, engine, int(logInt(t, 256, "threads")))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.seconds(n, b); got < bytes/math.Min(p.Link.D2H.SI(), p.Link.Nominal.SI()) {
			t.Fatalf("%s saves %d x %d bytes in %gs", engine, n, b, got)
		}
	}
}

func TestLaw10PhysicsStep(t *testing.T) {
	allPairs(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		w := drawWork(t)
		stepPhysics(t, p, m, &w, float64(m.Layers)*layerPhysics(p, m, &w))
	})
}

// drawOptions draws how a system that offloads uses a card.
func drawOptions(t *rapid.T) DeviceOptions {
	opts := DeviceOptions{
		LoadEngine:      rapid.SampledFrom(LoadEngines()).Draw(t, "load"),
		SaveEngine:      rapid.SampledFrom(SaveEngines()).Draw(t, "save"),
		SaveBufferBytes: logInt(t, 1<<32, "buffer") - 1,
		BlockTokens:     64, Offload: true, TopP: rapid.Bool().Draw(t, "top p"),
	}
	if opts.LoadEngine == LoadSwap {
		opts.HotSlots = 64 * int(logInt(t, 256, "buffer's blocks"))
	}
	return opts
}

// stepPhysics holds a step of layers of the same work, which take least seconds at the least and
// move blocks, against the card's peaks and its links, those between GPUs included.
func stepPhysics(t *rapid.T, p *hw.Profile, m *llm.Model, w *sim.Work, least float64) {
	opts := drawOptions(t)
	d, err := NewDevice(p, m, opts)
	if err != nil {
		t.Fatal(err)
	}
	if opts.HotSlots > 0 {
		w.Swapped = w.Decodes
	}
	sampled := rapid.IntRange(0, w.Decodes).Draw(t, "sampled")
	blocks := logInt(t, 1e6, "loads") - 1
	timing := runStep(t, d, &sim.Step{Sampled: sampled}, m.Layers, w, blocks, blocks)
	least += float64(m.Layers) * float64(blocks<<14) / p.Link.H2D.SI()
	if sampled > 0 {
		head := 2 * float64(m.Hidden) * float64(m.Vocab)
		least += math.Max(head*float64(sampled)/p.GPU.PeakFP16.SI(), head/p.GPU.HBMBandwidth.SI())
	}
	if n := float64(m.GPUs()); n > 1 {
		reduces := float64(2*m.Layers) * ring(n) * 2 * float64(w.Tokens*m.Hidden) /
			p.Interconnect.Nominal.SI()
		if least += reduces; timing.Phases.AllReduce.Seconds() < reduces*(1-1e-12) {
			t.Fatalf("%s, %s over %g GPUs: all-reduces take %v, their links need %gs", p.Name, m.Name, n,
				timing.Phases.AllReduce, reduces)
		}
	}
	if timing.Elapsed.Seconds() < least*(1-1e-12) {
		t.Fatalf("%s, %s over %d GPUs, %+v, %+v: step takes %v, physics allow %gs", p.Name, m.Name,
			m.GPUs(), opts, w, timing.Elapsed, least)
	}
	if saved := float64(m.Layers) *
		float64(blocks<<14) / p.Link.D2H.SI(); timing.SavesDone.Seconds() < saved*(1-1e-12) {
		t.Fatalf("saves done after %v, the link needs %gs", timing.SavesDone, saved)
	}
}

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// runStep passes one step with the same Work and Moves in each layer.
func runStep(t fataler, d *Device, s *sim.Step, layers int, w *sim.Work, loads,
	saves int64) metrics.Timing {
	t.Helper()
	return runMoves(t, d, s, layers, w, kv.Moves{Loads: loads, Saves: saves, BlockBytes: 16 << 10})
}

// runMoves runs a step whose layers move the same.
func runMoves(t fataler, d *Device, s *sim.Step, layers int, w *sim.Work,
	moves kv.Moves) metrics.Timing {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(d.Begin(s))
	for layer := range layers {
		if w.Sparse {
			must(d.Score(layer, w))
		}
		moves.Layer = layer
		must(d.Move(&moves))
		must(d.Compute(layer, w))
	}
	timing, err := d.Finish()
	must(err)
	if timing.Elapsed != timing.Phases.Sum() {
		t.Fatalf("phases add up to %v, elapsed %v", timing.Phases.Sum(), timing.Elapsed)
	}
	return timing
}
