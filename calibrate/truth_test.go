package calibrate

import (
	"slices"

	"github.com/sparseserve/sparseserve/hw"
)

// truth returns a profile that the models can express exactly: rows at points
// that the plan measures.
func truth(name string) *hw.Profile {
	p, err := hw.Load(name, liveEngine, nil)
	must(err)
	from := source{"a test"}
	link := p.Link.D2H.SI()
	p.Host.LayerRate = from.figure(5, "GB/s", "x")
	p.Host.Step = from.figure(40, "us", "x")
	p.Host.Request = from.figure(3, "us", "x")
	p.Host.ContinueLatency = from.figure(fakeSync*1e6, "us", "x")
	p.Host.DriverContention = from.figure(2.5, "us", "x")
	p.Host.LoadBlock = from.figure(120, "ns", "x")
	p.Host.LayerRequest = from.figure(2.5, "us", "x")
	p.Host.FreeBlock = from.figure(6, "ns", "x")
	p.Load.MemcpyBase = from.figure(9, "us", "x")
	p.Save.MemcpyBase = from.figure(8, "us", "x")
	p.Load.FlashBlock = from.figure(30, "ns", "x")
	p.Save.GPUBlock = from.figure(40, "ns", "x")
	p.Load.Flash = nil
	for i, pool := range []float64{0.5, 1, 4, 16} {
		p.Load.Flash = append(p.Load.Flash, hw.PoolRow{PoolGiB: pool, Figure: from.figure(link*1e-9*(0.93-0.05*float64(i)), "GB/s", "x")})
	}
	p.Load.MemcpyPools = nil
	for i, r := range p.Load.Flash {
		more := 0.1 * float64(i-1) // nothing at 1 GiB
		p.Load.MemcpyPools = append(p.Load.MemcpyPools, hw.PoolTime{PoolGiB: r.PoolGiB, Figure: from.figure(p.Load.MemcpyCall.SI()*1e6+more, "us", "x")})
	}
	p.Save.MemcpyOverlappedPools = []hw.PoolTime{{PoolGiB: 1, Figure: from.figure(p.Save.MemcpyCall.SI()*1e6+0.4, "us", "x")}, {PoolGiB: 16, Figure: from.figure(p.Save.MemcpyCall.SI()*1e6+0.6, "us", "x")}}
	p.Save.Scatter = nil
	for i, n := range []int{1, 2, 4, 8, 12, 16} {
		p.Save.Scatter = append(p.Save.Scatter, hw.ScatterRow{Threads: n, Figure: from.figure(link*1e-9*(0.1+0.12*float64(i)), "GB/s", "x")})
	}
	p.Save.Threads = from.figure(16, "threads", "x")
	p.Save.FlashChunk = from.figure(6, "MiB", "x")
	p.Save.Contention = from.figure(0.4, "share", "x")
	p.Load.MemcpyWarmup, p.Load.MemcpyWarmupBlocks = from.figure(0.3, "us", "x"), from.figure(500, "blocks", "x")
	p.Pointwise = []hw.TokenRow{{Shape: p.Pointwise[0].Shape, Tokens: 1, Figure: from.figure(20, "us", "x")}, {Shape: p.Pointwise[0].Shape, Tokens: 8192, Figure: from.figure(2, "ms", "x")}}
	for _, s := range []*hw.Stream{&p.DenseDecode, &p.SparseDecode} {
		s.Floor = hw.Figure{}
		s.Merge, s.CTAs = from.figure(100, "ns", "x"), from.figure(216, "CTAs", "x")
	}
	p.Scoring.Floor = hw.Figure{}
	p.Clock = hw.Clock{
		GEMMSteadyRatio: from.figure(0.85, "share", "x"), PowerFilter: from.figure(20, "ms", "x"), FrequencySlew: from.figure(120, "ms", "x"), AttentionPower: from.figure(0.9, "limits", "x"),
		CopyPower: from.figure(0.4, "share", "x"), MemoryBoundPower: from.figure(0.8, "share", "x"),
	}
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
	p.BlockClose = hw.BlockClose{Launch: from.figure(4, "us", "x"), Rate: from.figure(600, "GB/s", "x")}
	p.LayerOverhead = nil
	for i, k := range overheadServers {
		p.LayerOverhead = append(p.LayerOverhead, hw.OverheadRow{Attention: k.attention, Lookup: k.lookup, Figure: from.figure(2+float64(i), "us", "x")})
	}
	p.PSADecode = hw.PSADecode{Launch: from.figure(9, "us", "x"), PerHead: from.figure(8, "ns", "x"), Round: from.figure(3, "us", "x"),
		Relaunch: from.figure(1.5, "us", "x"), Rate: p.DenseDecode.Rate, ClusterLists: from.figure(108, "lists", "x")}
	return p
}

var fakeOrigin = Origin{Card: "NVIDIA A100-SXM4-40GB", Driver: "580.1", CUDA: "13.0", Library: "1", Host: "16 CPUs, 125 GiB", Memory: "42949672960", SMs: "108"}

// fakeCards are what drivers call the cards of the built-in profiles.
var fakeCards = map[string]string{
	"a100-40gb": "NVIDIA A100-SXM4-40GB", "a100-80gb": "NVIDIA A100-SXM4-80GB", "h100-80gb": "NVIDIA H100 80GB HBM3", "h200": "NVIDIA H200",
}

var fakeLimits = Limits{PoolGiB: 32, Threads: 16, DeviceBytes: 32 << 30}
