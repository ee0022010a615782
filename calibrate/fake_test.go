package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// fakeBench answers with what a profile says, times noise: a machine whose
// costs are known.
type fakeBench struct {
	truth    *hw.Profile
	noise    float64 // standard deviation of log seconds
	seed     uint64
	prepared []string // keys
	fail     func(Point) error
	bend     func(Point) float64 // factor on a point's time; nil: none
	models   map[string]*hw.Model
	visits   map[string]uint64 // by key
	file     []byte            // the truth's
}

func newFake(truth *hw.Profile, noise float64, seed uint64) *fakeBench {
	models := map[string]*hw.Model{}
	for _, shape := range linearShapes() {
		m, err := shapeModel(shape)
		must(err)
		models[shape] = m
	}
	return &fakeBench{truth: truth, noise: noise, seed: seed, models: models, visits: map[string]uint64{}}
}

func (f *fakeBench) Prepare(p Point) (Timed, error) {
	f.prepared = append(f.prepared, p.Key())
	if f.fail != nil {
		if err := f.fail(p); err != nil {
			return nil, err
		}
	}
	exact := f.seconds(p)
	if f.bend != nil {
		exact *= f.bend(p)
	}
	r := rand.New(rand.NewPCG(f.seed, hash(p.Key())+f.visits[p.Key()])) // whatever else is measured
	f.visits[p.Key()]++
	noise := f.noise
	if probeOf(p.Probe).fixed == drainSamples { // of some steps
		noise /= math.Sqrt(drainSteps)
	}
	// Of rounds of some layers, at least; and what they are compared with, whose kernels
	// are long and repeat within tenths of a percent.
	if probeOf(p.Probe).fixed == clockSamples || p.Probe == probeLinears || p.Probe == probeChunk {
		noise /= math.Sqrt(clockRounds / clockSamples * clockLayers)
	}
	return func(warmup, repeats int) ([]float64, error) {
		samples := make([]float64, repeats)
		for i := range samples {
			samples[i] = exact * math.Exp(noise*r.NormFloat64())
		}
		return samples, nil
	}, nil
}

// Times that no figure of a profile gives.
const (
	fakeSubmit = 4.8e-6
	fakeSync   = 10.3e-6
	fakeRope   = 1e-9   // per token
	fakeAlone  = 1.2e-6 // of compute, per token
)

func (f *fakeBench) seconds(p Point) float64 {
	t, at := f.truth, datum{Point: p, model: f.models[p.Shape]}
	bytes := func() float64 { return float64(p.At("bytes")) }
	switch p.Probe {
	case probeSync:
		return fakeSync
	case probeLive:
		return t.HostStepSeconds(p.At("requests"))
	case probeLiveOffload:
		return t.HostStepSeconds(p.At("requests")) + float64(p.At("layers"))*t.LayerSyncSeconds(int(p.At("requests")), int64(listBytes(at)))
	case probeLiveLoads:
		layer := t.LayerSyncSeconds(int(p.At("requests")), int64(listBytes(at))) + float64(p.At("loads"))*t.Host.LoadBlock.SI()
		return t.HostStepSeconds(p.At("requests")) + float64(p.At("layers"))*layer
	case probeLiveHeld, probeLiveHeldPSA, probeLiveDense, probeLiveLookup, probeLiveLookupPSA:
		return f.modelled(p)
	case probeLiveUnsplit:
		held := p
		held.Probe = probeLiveHeld
		return f.modelled(held) + float64(p.At("layers"))*t.LayerSyncSeconds(int(p.At("requests")), int64(listBytes(at)))
	case probeLiveFreed:
		return float64(p.At("layers")*int64(at.model.KVHeads)*livePrompt/blockTokens) * t.Host.FreeBlock.SI()
	case probeRope:
		return 2*fakeSubmit + fakeRope*float64(p.At("tokens"))
	case probeClose:
		return 2*fakeSubmit + fakeRope*float64(p.At("tokens")) + hw.Seconds(t.Costs(at.model).BlockClose, sim.Work{Digests: 1, DigestTokens: p.At("tokens")})
	case probeH2D:
		return priceLoad(t, hw.LoadMemcpy, 1, p.At("bytes"), basePool)
	case probeD2H:
		return priceSave(t, hw.SaveMemcpy, 1, p.At("bytes"), basePool, 0)
	case probeDuplexCopy:
		return 2 * bytes() / t.Link.DuplexCopy.SI()
	case probeDuplexKernel:
		return 2 * bytes() / t.Link.DuplexKernel.SI()
	case probeLoadMemcpy:
		return priceLoad(t, hw.LoadMemcpy, p.At("blocks"), p.At("block_bytes"), p.At("pool_mib"))
	case probeLoadFlash:
		return priceLoad(t, hw.LoadFlash, p.At("blocks"), p.At("block_bytes"), p.At("pool_mib"))
	case probeSaveMemcpy:
		return priceSave(t, hw.SaveMemcpy, p.At("blocks"), p.At("block_bytes"), p.At("pool_mib"), 0)
	case probeSaveGPU:
		return priceSave(t, hw.SaveGPU, p.At("blocks"), p.At("block_bytes"), basePool, 0)
	case probeSaveFlash:
		return priceSave(t, hw.SaveFlash, p.At("blocks"), p.At("block_bytes"), basePool, p.At("threads"))
	case probeLinears:
		return hw.Seconds(t.Costs(at.model).GEMM, sim.Work{Tokens: int(p.At("tokens"))})
	case probeClock, probePrompt, probeChunk, probeRested, probeRestedDense:
		return clockSeconds(t, at)
	case probePointwise:
		return hw.Seconds(t.Costs(at.model).Elementwise, sim.Work{Tokens: int(p.At("tokens"))})
	case probePrefill:
		return hw.Seconds(t.Costs(at.model).PrefillAttention, sim.Work{Prefill: []sim.Span{span(at)}})
	case probeDense:
		return hw.Seconds(t.Costs(at.model).DenseDecode, sim.Work{DecodeTokens: p.At("batch") * p.At("context_tokens"), Decodes: int(p.At("batch"))})
	case probeSparse:
		return hw.Seconds(t.Costs(at.model).SparseDecode, sim.Work{DecodeTokens: p.At("batch") * p.At("budget_tokens"), Decodes: int(p.At("batch"))})
	case probePSA, probePSALaunches, probePSAUneven:
		return pricePSA(t, at)
	case probeSelect:
		return hw.Seconds(t.Costs(at.model).Scoring, sim.Work{ScoredBlocks: p.At("batch") * p.At("context_tokens") / blockTokens, Decodes: int(p.At("batch"))})
	case probeCallsNone, probeCallsSave:
		calls := float64(p.At("launches") + p.At("copies"))
		return calls * (fakeSubmit + map[string]float64{probeCallsSave: t.Host.DriverContention.SI()}[p.Probe])
	case probeLayersNone, probeLayersMemcpy, probeLayersGPU:
		alone := float64(p.At("layers")) * fakeAlone * float64(p.At("chunk_tokens"))
		if p.Probe == probeLayersGPU {
			save := priceSave(t, hw.SaveGPU, p.At("chunk_tokens")/blockTokens*int64(at.model.KVHeads), at.model.Geometry(blockTokens).BlockBytes, basePool, 0)
			return alone + float64(p.At("layers")-1)*t.Save.Contention.SI()*save + save
		}
		return alone * map[string]float64{probeLayersNone: 1, probeLayersMemcpy: 1.7}[p.Probe]
	case probePrefillMemcpy:
		n, block := layerBlocks(at)
		save, err := t.OverlappedSaveSeconds(hw.SaveMemcpy, n, block, p.At("pool_mib")*mib, 0)
		must(err)
		return fakeAlone*float64(p.At("chunk_tokens")) + float64(p.At("layers"))*save
	}
	panic(fmt.Sprintf("no cost of %s", p.Key()))
}

// modelled is what the truth says of a server that requests leave.
func (f *fakeBench) modelled(p Point) float64 {
	kind := overheadServerOf(p.Probe).kind
	if f.file == nil {
		data, err := f.truth.Encode()
		must(err)
		f.file = data
	}
	key := servedKey{string(f.file), drainKey{shape: p.Shape, kind: kind, layers: p.At("layers")}}
	served, ok := servedKnown.Load(key)
	if !ok {
		c, err := newServerRun(p.Shape, p.At("layers"), kind)
		must(err)
		served, err = c.modelled(f.truth)
		must(err)
		servedKnown.Store(key, served)
	}
	steps, err := dealtMedians(served.(*drainTimes).steadyAt(p))
	must(err)
	return medianOf(steps).Value
}

// servedKey is a server on the model of some profile.
type servedKey struct {
	file string
	drainKey
}

var servedKnown sync.Map // servedKey to *drainTimes, read only
