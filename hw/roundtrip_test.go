package hw

import (
	"math"
	"strings"
	"testing"

	"sparseserve/sim"
	"sparseserve/sim/des"
	"sparseserve/sim/kv"
)

// Lists go up between two kernels where nothing is loaded: in each layer that
// selects, by their bytes. With offloading the layer's round trip has them.
func TestListsGoUpBetweenKernels(t *testing.T) {
	for name, c := range map[string]struct {
		opts   DeviceOptions
		sparse bool
		more   des.Time
	}{
		"in HBM":          {DeviceOptions{}, true, 8*des.Microsecond + 4*32*2048/32*des.Nanosecond},
		"dense":           {DeviceOptions{}, false, 0},
		"with offloading": {DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, SaveBufferBytes: 1 << 30}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]sim.Timing
			for i := range got {
				p := mustProfile(t, "h200")
				if p.Host.ListCopy, p.Host.ListRate = (Figure{}), (Figure{}); i == 1 {
					p.Host.ListCopy, p.Host.ListRate = us(8), Figure{Value: 1, Unit: "GB/s", From: Measured, Source: "a test"}
				}
				d, err := NewDevice(p, mustModel(t, "lwm-7b"), c.opts)
				if err != nil {
					t.Fatal(err)
				}
				got[i] = runStep(t, d, &sim.Step{}, 1, &sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 2048, ScoredBlocks: 400, Sparse: c.sparse}, 0, 0)
			}
			if more := got[1].Phases.SparseAttention - got[0].Phases.SparseAttention; more != c.more || got[1].Elapsed-got[0].Elapsed != c.more {
				t.Errorf("%v of sparse attention and %v in all, want %v", more, got[1].Elapsed-got[0].Elapsed, c.more)
			}
		})
	}
}

// The host takes its time for the loads of a layer that selects, the first blocks
// more than those after them, before any is loaded; nothing for loads of a layer
// that only prefills, which is launched while the GPU works.
func TestHostNamesLoads(t *testing.T) {
	p := mustProfile(t, "h200")
	p.Host.Load, p.Host.Loads, p.Host.LoadsHalf = Figure{}, Figure{}, Figure{}
	named := *p
	named.Host.Load = Figure{Value: 100, Unit: "ns", From: Measured, Source: "a test"}
	named.Host.Loads = us(40)
	named.Host.LoadsHalf = Figure{Value: 100, Unit: "blocks", From: Measured, Source: "a test"}
	for name, c := range map[string]struct {
		sparse bool
		loads  int64
		want   des.Time
	}{
		"none":         {true, 0, 0},
		"some":         {true, 100, 30 * des.Microsecond},
		"many":         {true, 3900, 429 * des.Microsecond},
		"of a prefill": {false, 100, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]sim.Timing
			for i, gpu := range []*Profile{p, &named} {
				d, err := NewDevice(gpu, mustModel(t, "lwm-7b"), DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, SaveBufferBytes: 1 << 30})
				if err != nil {
					t.Fatal(err)
				}
				w := sim.Work{Tokens: 8, Decodes: 8, DecodeTokens: 8 * 2048, Sparse: c.sparse}
				got[i] = runStep(t, d, &sim.Step{}, 1, &w, c.loads, 0)
			}
			if more := got[1].Phases.Host - got[0].Phases.Host; more < c.want || more > c.want+1 || got[1].Elapsed-got[0].Elapsed != more {
				t.Errorf("%v of the host and %v in all, want %v", more, got[1].Elapsed-got[0].Elapsed, c.want)
			}
			if !c.sparse && got[1].Phases.LoadStall == 0 {
				t.Error("the prefill loads nothing")
			}
		})
	}
	if s := named.HostLoadsSeconds(100); s < 30e-6*(1-1e-9) || s > 30e-6*(1+1e-9) {
		t.Errorf("100 blocks take %g s", s)
	}
}

// With offloading the K and V of a layer's decodes are written by a kernel of
// their own, before attention and as part of it.
func TestDecodesAreWrittenApart(t *testing.T) {
	offload := DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, SaveBufferBytes: 1 << 30}
	sparse := sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 2048, ScoredBlocks: 400, Sparse: true}
	for name, c := range map[string]struct {
		opts          DeviceOptions
		work          sim.Work
		dense, sparse des.Time
	}{
		"sparse":  {offload, sparse, 0, 3 * des.Microsecond},
		"dense":   {offload, sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 2048}, 3 * des.Microsecond, 0},
		"prefill": {offload, sim.Work{Tokens: 64, Prefill: []sim.Span{{Query: 64}}}, 0, 0},
		"in HBM":  {DeviceOptions{}, sparse, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]sim.Timing
			for i := range got {
				p := mustProfile(t, "h200")
				if p.Host.KVWrite = (Figure{}); i == 1 {
					p.Host.KVWrite = us(3)
				}
				d, err := NewDevice(p, mustModel(t, "lwm-7b"), c.opts)
				if err != nil {
					t.Fatal(err)
				}
				got[i] = runStep(t, d, &sim.Step{}, 1, &c.work, 0, 0)
			}
			dense, sparse := got[1].Phases.DenseAttention-got[0].Phases.DenseAttention, got[1].Phases.SparseAttention-got[0].Phases.SparseAttention
			if dense != c.dense || sparse != c.sparse || got[1].Elapsed-got[0].Elapsed != c.dense+c.sparse {
				t.Errorf("%v of dense and %v of sparse attention and %v in all, want %v and %v", dense, sparse, got[1].Elapsed-got[0].Elapsed, c.dense, c.sparse)
			}
		})
	}
}

// Looked up by the GPU, a layer pays for its lists' way up and the lookup, more
// where blocks are missing, and for no round trip.
func TestGPULookup(t *testing.T) {
	p, err := Load("h200", "sparseserve-live", nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := LoadModel("lwm-7b")
	if err != nil {
		t.Fatal(err)
	}
	p.Host.Lookup = Figure{Value: 5, Unit: "us", From: Measured, Source: "a test"}
	p.Host.LookupRate = Figure{Value: 10, Unit: "GB/s", From: Measured, Source: "a test"}
	p.Host.LookupMiss = Figure{Value: 2, Unit: "us", From: Measured, Source: "a test"}
	p.Host.LookupBlock = Figure{Value: 100, Unit: "ns", From: Measured, Source: "a test"}
	const tokens = 4 * 2048
	lists := newListCopy(p, &m)
	for loads, want := range map[int64]float64{
		0: lists.seconds(tokens) + 5e-6 + ListBytes(&m, tokens)/10e9,
		9: lists.seconds(tokens) + 7.9e-6 + ListBytes(&m, tokens)/10e9,
	} {
		d, err := NewDevice(p, &m, DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, GPULookup: true})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: tokens, ScoredBlocks: 1000, Sparse: true}
		before := d.phases.Host
		for _, err := range []error{
			d.Begin(&sim.Step{Requests: 4, Sampled: 4}), d.Score(0, &w), d.Move(&kv.Moves{Loads: loads, BlockBytes: m.Geometry(32).BlockBytes}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		step := d.engine.step + 4*d.engine.request
		if got := (d.phases.Host - before - step).Seconds(); math.Abs(got-want) > 3e-9 {
			t.Errorf("%d loads: %g s, want %g", loads, got, want)
		}
		if got := p.LookupSeconds(4*64*int64(m.KVHeads), loads) + lists.seconds(tokens); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d loads: the profile says %g s, want %g", loads, got, want)
		}
	}
}

// A layer that does not select lists all blocks, and the GPU looks them up too; one
// without decodes has no lists.
func TestGPULookupOfDenseLayers(t *testing.T) {
	const tokens = 4 * 8192
	for _, c := range []struct {
		lookup  bool
		decodes int
		loads   int64
	}{{false, 4, 0}, {true, 4, 0}, {true, 4, 9}, {true, 0, 0}, {true, 0, 9}} {
		p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
		p.Host.LookupBlock = Figure{Value: 100, Unit: "ns", From: Measured, Source: "a test"}
		p.Host.CPULayer = Figure{} // the CPU is never late (cpu_test.go)
		d, err := NewDevice(p, m, DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, GPULookup: c.lookup})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: c.decodes + 64, Decodes: c.decodes, Prefill: []sim.Span{{Query: 64}}}
		want := 0.0
		if c.decodes > 0 {
			w.DecodeTokens = tokens
			if c.lookup {
				lists := newListCopy(p, m)
				want = lists.seconds(tokens) + p.LookupSeconds(tokens/32*int64(m.KVHeads), c.loads)
			}
		}
		for _, err := range []error{d.Begin(&sim.Step{Requests: 4}), d.Move(&kv.Moves{Loads: c.loads, BlockBytes: m.Geometry(32).BlockBytes}), d.Compute(0, &w)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := (d.phases.Host - d.engine.step - 4*d.engine.request).Seconds(); math.Abs(got-want) > 3e-9 {
			t.Errorf("%+v: %g s, want %g", c, got, want)
		}
		was := d.phases.Host
		if err := d.Compute(1, &w); err != nil { // what one layer loads is nothing to the next
			t.Fatal(err)
		}
		more := want
		if c.loads > 0 && want > 0 {
			more -= p.Host.LookupMiss.SI() + float64(c.loads)*p.Host.LookupBlock.SI()
		}
		if got := (d.phases.Host - was).Seconds(); math.Abs(got-more) > 3e-9 {
			t.Errorf("%+v, next layer: %g s, want %g", c, got, more)
		}
	}
}

// A card on which it was not measured does not look up for nothing.
func TestGPULookupNeedsItsFigure(t *testing.T) {
	p, m := mustProfile(t, "a100-80gb"), mustModel(t, "lwm-7b")
	_, err := NewDevice(p, m, DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, GPULookup: true})
	if err == nil || !strings.Contains(err.Error(), "a100-80gb has no host.lookup") {
		t.Errorf("error %v", err)
	}
}
