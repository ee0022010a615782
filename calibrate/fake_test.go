package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"sparseserve/hw"
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
	for _, shape := range append(linearShapes(), headShapes()...) {
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
	if slices.Contains(behindProbes, p.Probe) { // a sample is the mean of as many layers
		noise /= math.Sqrt(behindLayers)
	}
	if slices.Contains(leavingProbes, p.Probe) { // of some steps
		noise /= math.Sqrt(leavingSteps)
	}
	// Of rounds of some layers, at least; and what they are compared with, whose kernels
	// are long and repeat within tenths of a percent.
	if slices.Contains(clockProbes, p.Probe) || p.Probe == probeLinears || p.Probe == probeChunk {
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
	fakeTable  = 2.5e-6
	fakeRope   = 1e-9   // per token
	fakeAlone  = 1.2e-6 // of compute, per token
)

func (f *fakeBench) seconds(p Point) float64 {
	t, at := f.truth, datum{Point: p, model: f.models[p.Shape]}
	bytes := func() float64 { return float64(p.At("bytes")) }
	switch p.Probe {
	case probeSubmit:
		return fakeSubmit
	case probeSync:
		return fakeSync
	case probeLive:
		return t.HostStepSeconds(p.At("requests"))
	case probeLiveOffload:
		lists := 4 * p.At("requests") * int64(at.model.KVHeads) * liveBudget / blockTokens
		return t.HostStepSeconds(p.At("requests")) + float64(p.At("layers"))*t.LayerSyncSeconds(int(p.At("requests")), lists)
	case probeLiveLoads:
		lists := 4 * p.At("requests") * int64(at.model.KVHeads) * liveBudget / blockTokens
		layer := t.LayerSyncSeconds(int(p.At("requests")), lists) + t.HostLoadsSeconds(p.At("loads"))
		return t.HostStepSeconds(p.At("requests")) + float64(p.At("layers"))*layer
	case probeLiveCPU:
		return t.HostStepSeconds(p.At("requests")) + float64(p.At("layers"))*t.CPUSeconds(int(p.At("requests")), p.At("requests")*int64(at.model.KVHeads)*liveBudget/blockTokens, p.At("missing"))
	case probeLiveLeaving:
		lists := 4 * p.At("requests") * int64(at.model.KVHeads) * liveBudget / blockTokens
		return t.HostStepSeconds(p.At("requests")) + float64(p.At("layers"))*t.LayerSyncSeconds(int(p.At("requests")), lists)
	case probeLivePSA:
		lists := 4 * p.At("requests") * int64(at.model.KVHeads) * p.At("rounds") * psaMicro
		return t.HostStepSeconds(p.At("requests")) + float64(p.At("layers"))*t.PSALayerSeconds(int(p.At("requests")), lists)
	case probeLiveHeld, probeLiveHeldPSA, probeLiveDense, probeLiveChunk, probeLivePrompt, probeLiveLookup, probeLiveLookupPSA, probeLiveTight, probeLiveTightPSA:
		return f.modelled(p)
	case probeLiveUnsplit, probeLiveUnsplitPSA:
		bytes, held := turnBytes(at), p
		held.Probe = map[string]string{probeLiveUnsplit: probeLiveHeld, probeLiveUnsplitPSA: probeLiveHeldPSA}[p.Probe]
		return f.modelled(held) + float64(p.At("layers"))*(t.TurnSeconds(p.has("rounds"), at.model.KVHeads, int(p.At("requests")), bytes)-t.ListCopySeconds(heldBytes(at))+t.Host.KVWrite.SI())
	case probeLiveCPUPSA:
		return t.HostStepSeconds(p.At("requests")) + float64(p.At("layers"))*t.CPUPSASeconds(int(p.At("requests")), int64(turnBytes(at))/4, p.At("missing"))
	case probeLiveWhole:
		return float64(p.At("layers")) * t.WholeListsSeconds(at.model)
	case probeLiveFreed:
		return float64(p.At("layers")*int64(at.model.KVHeads)*livePrompt/blockTokens) * t.Host.FreedBlock.SI()
	case probeDown, probeUp:
		return t.LayerSyncSeconds(0, p.At("bytes")) / 2
	case probePair:
		return 2 * fakeSubmit
	case probeBetween:
		return 2*fakeSubmit + t.Host.ListCopy.SI() + bytes()/t.Host.ListRate.SI()
	case probeKVWrite:
		return 2*fakeSubmit + t.Host.KVWrite.SI()
	case probeRope:
		return 2*fakeSubmit + fakeRope*float64(p.At("tokens"))
	case probeDigest:
		return 2*fakeSubmit + fakeRope*float64(p.At("tokens")) + t.DigestSeconds(at.model, 1, p.At("tokens"))
	case probeRing:
		bytes := p.At("tokens") * at.model.LayerKVBytesPerToken()
		return 2*fakeSubmit + fakeRope*float64(p.At("tokens")) + t.DigestSeconds(at.model, 1, p.At("tokens")) + t.RingSeconds(1, bytes)
	case probeLookup:
		return 2*fakeSubmit - fakeWarm + t.LookupSeconds(p.At("requests")*int64(at.model.KVHeads)*liveBudget/blockTokens, 0)
	case probeLookupMissing:
		return 2*fakeSubmit + fakeTable - fakeWarm + t.LookupSeconds(p.At("requests")*int64(at.model.KVHeads)*liveBudget/blockTokens, p.At("missing_blocks"))
	case probeTable:
		return 2*fakeSubmit + fakeTable
	case probeBehindNone, probeBehindLists, probeBehindWrite, probeBehindTable, probeBehindLookup, probeBehindMissing, probeBehindGather, probeBehindLoad:
		return f.behind(p, at)
	case probeHBM:
		return 2 * bytes() / (0.9 * t.GPU.HBMBandwidth.SI())
	case probeH2D:
		return priceLoad(t, hw.LoadMemcpy, 1, p.At("bytes"), basePool)
	case probeD2H:
		return priceSave(t, hw.SaveMemcpy, 1, p.At("bytes"), basePool, 0)
	case probeDuplexCopy:
		return 2 * bytes() / t.Link.DuplexCopy.SI()
	case probeDuplexKernel:
		return 2 * bytes() / t.Link.DuplexKernel.SI()
	case probeDuplexGather:
		return 2 * bytes() / t.Link.DuplexGather.SI()
	case probeLoadMemcpy:
		return priceLoad(t, hw.LoadMemcpy, p.At("blocks"), p.At("block_bytes"), p.At("pool_mib"))
	case probeLoadBatched:
		return priceLoad(t, hw.LoadBatched, p.At("blocks"), p.At("block_bytes"), p.At("pool_mib"))
	case probeLoadFlash:
		return priceLoad(t, hw.LoadFlash, p.At("blocks"), p.At("block_bytes"), p.At("pool_mib"))
	case probeSaveMemcpy:
		return priceSave(t, hw.SaveMemcpy, p.At("blocks"), p.At("block_bytes"), p.At("pool_mib"), 0)
	case probeSaveGPU:
		return priceSave(t, hw.SaveGPU, p.At("blocks"), p.At("block_bytes"), basePool, 0)
	case probeSaveFlash:
		return priceSave(t, hw.SaveFlash, p.At("blocks"), p.At("block_bytes"), basePool, p.At("threads"))
	case probeLinears:
		return t.LinearsSeconds(at.model, int(p.At("tokens")))
	case probeClock, probePrompt, probeChunk, probeRested, probeRestedIdle, probeRestedDense:
		return clockSeconds(t, at)
	case probeDecodes:
		return wornDecodeSeconds(t, at, p.At("after_ms"))
	case probePointwise:
		return t.PointwiseSeconds(at.model, int(p.At("tokens")))
	case probeHead:
		return t.HeadSeconds(at.model, 0, int(p.At("rows")))
	case probeEmbed:
		return t.HeadSeconds(at.model, int(p.At("tokens")), 0)
	case probePrefill:
		return t.PrefillSeconds(at.model, span(at))
	case probeChunked:
		sum := 0.0
		for _, s := range chunks(p.At("prompt_tokens"), p.At("chunk_tokens")) {
			sum += t.PrefillSeconds(at.model, s)
		}
		return sum
	case probeDense:
		return t.DenseDecodeSeconds(at.model, p.At("batch")*p.At("context_tokens"), int(p.At("batch")))
	case probeSparse:
		return t.SparseDecodeSeconds(at.model, p.At("batch")*p.At("budget_tokens"), int(p.At("batch")))
	case probePSA, probePSALaunches:
		s, _ := t.PSADecodeSeconds(at.model, int(p.At("batch")), int(p.At("budget_tokens")/blockTokens), blockTokens, int(p.At("micro_blocks")), psaLaunches(at))
		return s
	case probeDenseUneven:
		return t.DenseBatchSeconds(at.model, contextsOf(p))
	case probePSAUneven:
		s, _ := t.PSARoundsSeconds(at.model, int(p.At("batch")), int(p.At("micro_blocks")), reach(p, at.model))
		return s
	case probePSALaunchCalls:
		return t.Host.PSALaunchCalls.SI()
	case probeSelect:
		return t.ScoringSeconds(at.model, p.At("batch")*p.At("context_tokens")/blockTokens, int(p.At("batch")))
	case probeBesideNone, probeBesideFlash:
		return fakeAlone * float64(p.At("tokens"))
	case probeBesideLoad:
		return 1.05 * fakeAlone * float64(p.At("tokens"))
	case probeBesideSave:
		return 1.3 * fakeAlone * float64(p.At("tokens"))
	case probeCallsNone, probeCallsSave, probeCallsLoad:
		calls := float64(p.At("launches") + p.At("copies"))
		return calls * (fakeSubmit + map[string]float64{probeCallsSave: t.Host.CallWait.SI(), probeCallsLoad: t.Host.CopyWait.SI()}[p.Probe])
	case probeBothLoad:
		return priceLoad(t, hw.LoadMemcpy, p.At("blocks"), bothBlock, basePool) + float64(p.At("blocks")*p.At("beside"))*t.Host.LoadWait.SI()
	case probeBothSave:
		return priceSave(t, hw.SaveMemcpy, p.At("blocks"), bothBlock, basePool, 0) + float64(p.At("blocks")*p.At("beside"))*t.Host.CopyWait.SI()
	case probeBothTurn:
		return fakeSync + float64(p.At("bytes"))/t.Link.D2H.SI() + float64(p.At("beside"))*t.Host.TurnWait.SI()
	case probeLayersNone, probeLayersMemcpy, probeLayersGPU, probeLayersFlash:
		alone := float64(p.At("layers")) * fakeAlone * float64(p.At("chunk_tokens"))
		if p.Probe == probeLayersGPU {
			save := priceSave(t, hw.SaveGPU, p.At("chunk_tokens")/blockTokens*int64(at.model.KVHeads), at.model.Geometry(blockTokens).BlockBytes, basePool, 0)
			return alone + float64(p.At("layers")-1)*t.Save.Contention.SI()*save + save
		}
		return alone * map[string]float64{probeLayersNone: 1, probeLayersMemcpy: 1.7, probeLayersFlash: 1.01}[p.Probe]
	case probePrefillMemcpy:
		n, block := layerBlocks(at)
		save, err := t.BesidePrefillSeconds(hw.SaveMemcpy, n, block, p.At("pool_mib")*mib, 0)
		must(err)
		return fakeAlone*float64(p.At("chunk_tokens")) + float64(p.At("layers"))*save
	}
	panic(fmt.Sprintf("no cost of %s", p.Key()))
}

// modelled is what the truth says of a server that requests leave.
func (f *fakeBench) modelled(p Point) float64 {
	if f.file == nil {
		data, err := f.truth.Encode()
		must(err)
		f.file = data
	}
	key := servedKey{string(f.file), leavingKey{shape: p.Shape, kind: p.leavingKind(), layers: p.At("layers")}}
	served, ok := servedKnown.Load(key)
	if !ok {
		c, err := p.leavingCase()
		must(err)
		served, err = c.modelled(f.truth)
		must(err)
		servedKnown.Store(key, served)
	}
	steps, err := served.(*leavingTimes).samples(p)
	must(err)
	return medianOf(steps).Value
}

// servedKey is a server on the model of some profile.
type servedKey struct {
	file string
	leavingKey
}

var servedKnown sync.Map // servedKey to *leavingTimes, read only

// Behind the weights of a layer.
const (
	fakeBehind = 35e-6 // the linears
	fakeWarm   = 3e-6  // less for a lookup whose tables are in the L2
)

func (f *fakeBench) behind(p Point, at datum) float64 {
	t, blocks := f.truth, p.At("requests")*int64(at.model.KVHeads)*liveBudget/blockTokens
	sum := fakeBehind
	if p.Probe != probeBehindNone {
		sum += t.Host.ListCopy.SI() + float64(4*blocks)/t.Host.ListRate.SI()
	}
	switch p.Probe {
	case probeBehindWrite:
		sum += t.Host.KVWrite.SI()
	case probeBehindTable:
		sum += fakeTable
	case probeBehindGather:
		sum += t.Load.FlashIdle.SI()
	case probeBehindLoad:
		sum += t.QueuedLoadSeconds(p.At("blocks"), queuedBlock, basePool*mib)
	case probeBehindLookup:
		sum += t.LookupSeconds(blocks, 0)
	case probeBehindMissing:
		sum += fakeTable + t.LookupSeconds(blocks, p.At("missing_blocks"))
	}
	return sum
}
