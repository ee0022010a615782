package calibrate

import (
	"slices"

	"sparseserve/hw"
)

// truth returns a profile that the models can express exactly: rows at points
// that the plan measures.
func truth(name string) *hw.Profile {
	p, err := hw.Load(name, engineOf(name), nil)
	must(err)
	from := source{"a test"}
	link := p.Link.D2H.SI()
	p.Host.LayerRate = from.figure(5, "GB/s", "x")
	p.Host.Step = from.figure(40, "us", "x")
	p.Host.Request = from.figure(3, "us", "x")
	p.Host.ListCopy, p.Host.ListRate = from.figure(9, "us", "x"), from.figure(20, "GB/s", "x")
	p.Host.KVWrite = from.figure(3, "us", "x")
	p.Host.Lookup, p.Host.LookupRate, p.Host.LookupMiss = from.figure(6, "us", "x"), from.figure(40, "GB/s", "x"), from.figure(1.5, "us", "x")
	p.Host.LookupBlock = from.figure(4, "ns", "x")
	p.Host.CPULayer, p.Host.CPURequest, p.Host.CPURate, p.Host.CPULoad = from.figure(40, "us", "x"), from.figure(3, "us", "x"), from.figure(1, "GB/s", "x"), from.figure(120, "ns", "x")
	p.Host.CPUPSALayer, p.Host.CPUPSARequest, p.Host.CPUPSARate, p.Host.CPUPSALoad = from.figure(55, "us", "x"), from.figure(6, "us", "x"), from.figure(1.2, "GB/s", "x"), from.figure(180, "ns", "x")
	p.Host.PSALaunchCalls = from.figure(9, "us", "x")
	p.Host.Submit, p.Host.Verdict = from.figure(fakeSubmit*1e6, "us", "x"), from.figure(fakeSync*1e6, "us", "x")
	p.Host.CallWait, p.Host.LoadWait, p.Host.CopyWait, p.Host.TurnWait = from.figure(2.5, "us", "x"), from.figure(2.1, "us", "x"), from.figure(1.5, "us", "x"), from.figure(70, "us", "x")
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
	p.Save.MemcpyBesidePools = []hw.PoolTime{{PoolGiB: 1, Figure: from.figure(p.Save.MemcpyCall.SI()*1e6+0.4, "us", "x")}, {PoolGiB: 16, Figure: from.figure(p.Save.MemcpyCall.SI()*1e6+0.6, "us", "x")}}
	p.Save.Scatter = nil
	for i, n := range []int{1, 2, 4, 6, 8, 12, 16} {
		p.Save.Scatter = append(p.Save.Scatter, hw.ScatterRow{Threads: n, Figure: from.figure(link*1e-9*(0.1+0.12*float64(i)), "GB/s", "x")})
	}
	p.Save.Threads = from.figure(16, "threads", "x")
	p.Save.Contention = from.figure(0.4, "share", "x")
	p.Save.FlashWake = from.figure(2, "us", "x")
	p.Load.MemcpyEarly, p.Load.MemcpyFirst = from.figure(0.3, "us", "x"), from.figure(500, "blocks", "x")
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
	p.Clock = hw.Clock{
		Alone: from.figure(0.85, "share", "x"), Meter: from.figure(20, "ms", "x"), Pace: from.figure(120, "ms", "x"), Attention: from.figure(0.9, "limits", "x"),
		Copies: from.figure(0.4, "share", "x"), Idle: from.figure(0.15, "share", "x"), Dense: from.figure(0.8, "share", "x"), Linears: from.figure(0.7, "share", "x"), Decode: from.figure(0.15, "share", "x"),
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

// engineOf is the engine that a card's figures were first put together with.
func engineOf(card string) string {
	if card == "h200" {
		return "sparseserve-live"
	}
	return "vllm-0.5"
}
