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

// gainOf is the profile's own gain at a point of the clock.
func gainOf(p *hw.Profile, at datum) float64 {
	for _, r := range p.Clock.Gain {
		if r.Shape == at.Shape && r.Tokens == int(at.At("tokens")) {
			return r.SI()
		}
	}
	panic("no gain of " + at.Key())
}

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
	case probeLiveHeld, probeLiveHeldPSA, probeLiveDense, probeLiveChunk, probeLiveLookup, probeLiveLookupPSA, probeLiveTight, probeLiveTightPSA:
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
	case probeClock:
		c, lin := t.Clock, t.LinearsSeconds(at.model, int(p.At("tokens")))
		if milliseconds(at, "after_ms") < c.Burst.SI() {
			return lin * (1 - gainOf(t, at))
		}
		return lin
	case probeChunk:
		return t.ChunkSeconds(at.model, int(p.At("tokens")), int(p.At("prefix_tokens")))
	case probeRested, probeRestedIdle, probeRestedDense:
		c, lin := t.Clock, t.LinearsSeconds(at.model, int(p.At("tokens")))
		rest := map[string]hw.Figure{probeRested: c.Rest, probeRestedIdle: c.RestIdle, probeRestedDense: c.RestDense}[p.Probe]
		given := min(1, milliseconds(at, "rest_ms")/rest.SI()) * c.Burst.SI()
		return lin * (1 - gainOf(t, at)*min(1, given/(float64(at.At("layers"))*lin*(1-gainOf(t, at)))))
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
	key := servedKey{string(f.file), leavingKey{p.Shape, p.leavingKind(), p.At("layers")}}
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

// truth returns a profile that the models can express exactly: rows at points
// that the plan measures.
func truth(name string) *hw.Profile {
	p, err := hw.LoadProfile(name)
	must(err)
	from := source{"a test"}
	link := p.Link.D2H.SI()
	p.Host.LayerRate = from.figure(5, "GB/s", "x")
	p.Host.Step = from.figure(40, "us", "x")
	p.Host.Request = from.figure(3, "us", "x")
	p.Host.ListCopy, p.Host.ListRate = from.figure(9, "us", "x"), from.figure(20, "GB/s", "x")
	p.Host.KVWrite = from.figure(3, "us", "x")
	p.Host.Lookup, p.Host.LookupRate, p.Host.LookupMiss = from.figure(6, "us", "x"), from.figure(40, "GB/s", "x"), from.figure(1.5, "us", "x")
	p.Host.CPULayer, p.Host.CPURequest, p.Host.CPURate, p.Host.CPULoad = from.figure(40, "us", "x"), from.figure(3, "us", "x"), from.figure(1, "GB/s", "x"), from.figure(120, "ns", "x")
	p.Host.CPUPSALayer, p.Host.CPUPSARequest, p.Host.CPUPSARate, p.Host.CPUPSALoad = from.figure(55, "us", "x"), from.figure(6, "us", "x"), from.figure(1.2, "GB/s", "x"), from.figure(180, "ns", "x")
	p.Host.PSALaunchCalls = from.figure(9, "us", "x")
	p.Host.Submit, p.Host.Verdict = from.figure(fakeSubmit*1e6, "us", "x"), from.figure(fakeSync*1e6, "us", "x")
	p.Host.CallWait, p.Host.CopyWait = from.figure(2.5, "us", "x"), from.figure(1.5, "us", "x")
	p.Host.Load, p.Host.Loads, p.Host.LoadsHalf = from.figure(120, "ns", "x"), from.figure(45, "us", "x"), from.figure(60, "blocks", "x")
	p.Host.LayerRequest = from.figure(2.5, "us", "x")
	p.Host.PSALayer, p.Host.PSARequest, p.Host.PSARate = from.figure(30, "us", "x"), from.figure(4, "us", "x"), from.figure(1.5, "GB/s", "x")
	p.Host.WholeList, p.Host.FreedBlock = from.figure(1.2, "us", "x"), from.figure(6, "ns", "x")
	p.Load.MemcpyBase = from.figure(9, "us", "x")
	p.Save.MemcpyBase = from.figure(8, "us", "x")
	p.Load.FlashBlock = from.figure(30, "ns", "x")
	p.Save.GPUBlock = from.figure(40, "ns", "x")
	p.Save.FlashBlock = from.figure(20, "ns", "x")
	p.Save.FlashChunk = from.figure(4, "MiB", "x")
	p.Load.Flash = nil
	for i, pool := range []float64{0.125, 0.5, 1, 2, 4, 8, 16, 32} {
		p.Load.Flash = append(p.Load.Flash, hw.PoolRow{PoolGiB: pool, Figure: from.figure(link*1e-9*(0.93-0.05*float64(i)), "GB/s", "x")})
	}
	p.Load.MemcpyPools, p.Save.MemcpyPools = nil, nil
	for i, r := range p.Load.Flash {
		more := 0.1 * float64(i-2) // nothing at 1 GiB
		p.Load.MemcpyPools = append(p.Load.MemcpyPools, hw.PoolTime{PoolGiB: r.PoolGiB, Figure: from.figure(p.Load.MemcpyCall.SI()*1e6+more, "us", "x")})
		p.Save.MemcpyPools = append(p.Save.MemcpyPools, hw.PoolTime{PoolGiB: r.PoolGiB, Figure: from.figure(p.Save.MemcpyCall.SI()*1e6+1.3*more, "us", "x")})
	}
	p.Save.MemcpyBeside = from.figure(0.4, "us", "x")
	p.Save.Scatter = nil
	for i, n := range []int{1, 2, 4, 6, 8, 12, 16} {
		p.Save.Scatter = append(p.Save.Scatter, hw.ScatterRow{Threads: n, Figure: from.figure(link*1e-9*(0.1+0.12*float64(i)), "GB/s", "x")})
	}
	p.Save.Threads = from.figure(16, "threads", "x")
	p.Save.Contention = from.figure(0.4, "share", "x")
	p.Save.FlashWake = from.figure(2, "us", "x")
	p.Load.MemcpyLong, p.Load.MemcpyHalf = from.figure(0.8, "us", "x"), from.figure(60, "blocks", "x")
	p.Save.MemcpyLong, p.Save.MemcpyHalf = from.figure(0.6, "us", "x"), from.figure(250, "blocks", "x")
	p.Load.MemcpyStart, p.Load.MemcpyWhole = from.figure(3, "us", "x"), from.figure(64, "KiB", "x")
	p.Save.FlashJoin = from.figure(15, "us", "x")
	p.Save.FlashNear = from.figure(48, "MiB", "x")
	p.Save.Scatter[0].Long = from.figure(p.Save.Scatter[0].Value*0.7, "GB/s", "x")
	p.Load.BatchedSizes = nil
	for i, b := range []int{1, 2, 4, 8, 16, 32, 64, 256, 1024} {
		p.Load.BatchedSizes = append(p.Load.BatchedSizes, hw.SizeRow{BlockBytes: b * kib, Figure: from.figure(3-0.5*float64(i%4), "us", "x")})
	}
	p.Load.BatchedEarly, p.Load.BatchedFirst = from.figure(0.4, "share", "x"), from.figure(128, "blocks", "x")
	p.Embedding = hw.Embedding{Launch: from.figure(6, "us", "x"), Rate: from.figure(1000, "GB/s", "x")}
	for i := range p.Shapes {
		p.Shapes[i].Vocab = 32000
	}
	p.Head = nil
	for _, n := range []int{1, 32, 128, 256} {
		p.Head = append(p.Head, hw.TokenRow{Shape: p.Shapes[0].Name, Tokens: n, Figure: from.figure(0.3+0.002*float64(n), "ms", "x")})
	}
	for _, s := range []*hw.Stream{&p.DenseDecode, &p.SparseDecode} {
		s.Floor = hw.Figure{}
		s.Merge, s.CTAs = from.figure(100, "ns", "x"), from.figure(216, "CTAs", "x")
	}
	p.DenseDecode.Tail, p.DenseDecode.Piece, p.DenseDecode.Pages = from.figure(1.5, "us", "x"), from.figure(4, "us", "x"), from.figure(0.8, "us", "x")
	p.Scoring.Floor = hw.Figure{}
	p.Clock = hw.Clock{Alone: from.figure(0.7, "share", "x"), Burst: from.figure(50, "ms", "x"), Rest: from.figure(400, "ms", "x"), RestIdle: from.figure(100, "ms", "x"), RestDense: from.figure(200, "ms", "x")}
	for i, shape := range shapes {
		if !slices.ContainsFunc(p.Shapes, func(s hw.Shape) bool { return s.Name == shape }) {
			m, err := shapeModel(shape)
			must(err)
			p.Shapes = append(p.Shapes, hw.Shape{Name: shape, Hidden: m.Hidden, QHeads: m.QHeads, KVHeads: m.KVHeads, HeadDim: m.HeadDim, FFN: m.FFN})
		}
		for j, n := range clockSizes {
			p.Clock.Gain = append(p.Clock.Gain, hw.GainRow{Shape: shape, Tokens: int(n), Figure: from.figure(0.13+0.02*float64(i)+0.03*float64(j), "share", "x")})
		}
	}
	p.Link.DuplexGather = from.figure(1.6*link*1e-9, "GB/s", "x")
	p.Load.FlashQueued, p.Load.FlashIdle = from.figure(6, "us", "x"), from.figure(2.5, "us", "x")
	p.Save.RingLaunch, p.Save.RingRate = from.figure(4, "us", "x"), from.figure(600, "GB/s", "x")
	p.Digest = hw.Digest{Launch: from.figure(3, "us", "x"), Rate: from.figure(1100, "GB/s", "x")}
	p.Scoring.AtOnce, p.Scoring.Long = from.figure(scoredAtOnce, "blocks", "x"), from.figure(3, "us", "x")
	p.Scoring.Room, p.Scoring.Crowd = from.figure(108, "lists", "x"), from.figure(4, "us", "x")
	p.Scoring.PerHead, p.Scoring.PerLong, p.Scoring.PerQuery = from.figure(15, "ns", "x"), from.figure(6, "ns", "x"), from.figure(800, "ns", "x")
	p.Gaps = nil
	for i, k := range gapServers {
		for _, heads := range []int{8, 32} {
			for _, n := range []int{1, 2, 3, 4, 6, 8, 12, 16} {
				if (k.attention != hw.GapPrefill || n == 1) && (n <= 8 || heads == 8) {
					p.Gaps = append(p.Gaps, hw.GapRow{Attention: k.attention, Lookup: k.lookup, KVHeads: heads, Requests: n, Figure: from.figure(2+float64(i)+0.1*float64(n*n%7)+float64(heads)/16, "us", "x")})
				}
			}
		}
	}
	p.PSADecode = hw.PSADecode{Launch: from.figure(9, "us", "x"), PerHead: from.figure(8, "ns", "x"), Round: from.figure(3, "us", "x"),
		PerBlock: from.figure(120, "ns", "x"), Relaunch: from.figure(1.5, "us", "x"), Rate: p.DenseDecode.Rate, Alone: from.figure(450, "ns", "x")}
	return p
}

var fakeOrigin = Origin{Card: "NVIDIA A100-SXM4-40GB", Driver: "580.1", CUDA: "13.0", Library: "1", Host: "16 CPUs, 125 GiB", Memory: "42949672960", SMs: "108"}

// fakeCards are what drivers call the cards of the built-in profiles.
var fakeCards = map[string]string{
	"a100-40gb": "NVIDIA A100-SXM4-40GB", "a100-80gb": "NVIDIA A100-SXM4-80GB", "h100-80gb": "NVIDIA H100 80GB HBM3", "h200": "NVIDIA H200",
}

var fakeLimits = Limits{PoolGiB: 32, Threads: 16, DeviceBytes: 32 << 30, Batched: true}
