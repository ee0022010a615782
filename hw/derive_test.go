package hw

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw/builtin"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// On the card that they were measured on kernels cost what was measured.
func TestKernelsAtHome(t *testing.T) {
	for _, name := range builtin.Names(kernelFiles, "kernels") {
		k, err := loadKernels(name, "")
		if err != nil {
			t.Fatal(err)
		}
		again, _ := loadKernels(name, "")
		card, err := LoadCard(k.MeasuredOn)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.KernelCosts.on(card, card); !reflect.DeepEqual(got, again.KernelCosts) {
			t.Errorf("%s changes on %s, where it was measured", name, card.Name)
		}
	}
}

// Every rate of a kernel scales with a figure of a card.
func TestEveryRateScales(t *testing.T) {
	var walk func(v reflect.Type, path string, tag reflect.StructTag)
	walk = func(v reflect.Type, path string, tag reflect.StructTag) {
		switch {
		case v == reflect.TypeFor[Figure]():
			dim := strings.TrimSuffix(tag.Get("dim"), ",optional")
			if by := tag.Get("by"); (dim == "rate" || dim == "compute") != (by != "" && by != "sms") {
				t.Errorf("%s: a %q that scales by %q", path, dim, tag.Get("by"))
			}
		case v.Kind() == reflect.Slice:
			walk(v.Elem(), path, tag)
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				f := v.Field(i)
				walk(f.Type, path+"."+f.Name, f.Tag)
			}
		}
	}
	walk(reflect.TypeFor[KernelCosts](), "kernels", "")
}

// The H100's and the A100-40GB's costs against the rule done by hand.
func TestDerivedCards(t *testing.T) {
	load := func(gpu string) *Profile {
		p, err := Load(gpu, "sparseserve-live", nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	from, to := load("h200"), load("h100-80gb")
	ratio := 4800.0 / 3350
	check := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got/want-1) > 1e-3 {
			t.Errorf("%s: %g, want %g", what, got, want)
		}
	}
	check("dense decode", to.DenseDecode.Rate.SI(), from.DenseDecode.Rate.SI()/ratio)
	check("its launch", to.DenseDecode.Launch.SI(), from.DenseDecode.Launch.SI())
	check("prefill", to.Prefill[9].Rate.SI(), from.Prefill[9].Rate.SI())
	check("FlashH2D", to.Load.Flash[0].SI(), from.Load.Flash[0].SI()*51.2/55.35)
	check("GPU scatter", to.Save.GPURate.SI(), from.Save.GPURate.SI()*50.7/55.25)
	check("memcpy call", to.Load.MemcpyCall.SI(), from.Load.MemcpyCall.SI())
	launch := from.LinearLaunch.SI()
	check("one token's linears", to.Linears[0].SI(), launch+(from.Linears[0].SI()-launch)*ratio)
	last := len(from.Linears) - 1
	check("many tokens' linears", to.Linears[last].SI(), from.Linears[last].SI())
	check("norms of one token", to.Pointwise[0].SI(), from.Pointwise[0].SI())

	b200, b300 := loadKernelsOn(t, "b200"), loadKernelsOn(t, "b300")
	four, more := b200.grid(GridGEMM, "nvfp4"), b300.grid(GridGEMM, "nvfp4")
	launches, most := slices.Min(four.Times), len(four.Times)-1
	check("FP4 GEMM of many tokens", more.Times[most]-launches, (four.Times[most]-launches)*9/14)

	a80, a40 := load("a100-80gb"), load("a100-40gb")
	check("A100-40GB, one token", a40.Linears[0].SI(), a80.Linears[0].SI()*2039/1555)
	check("A100-40GB, sparse decode", a40.SparseDecode.Rate.SI(), a80.SparseDecode.Rate.SI()*1555/2039)
	check("A100-40GB, prefill", a40.Prefill[1].Rate.SI(), a80.Prefill[1].Rate.SI())
}

// loadKernelsOn is a card under the engine that runs imported kernels.
func loadKernelsOn(t *testing.T, gpu string) *Profile {
	t.Helper()
	p, err := Load(gpu, "vllm-0.15", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// machines draws a card with an engine that runs there.
func machines(t *rapid.T) (gpu, engine string) {
	return rapid.SampledFrom(CardNames()).Draw(t, "card"),
		rapid.SampledFrom(EngineNames()).Draw(t, "engine")
}

// steps times a few steps of drawn work, offloaded.
func steps(t interface{ Fatal(...any) }, gpu, engine string, ch Changes, m *llm.Model,
	opts DeviceOptions, works []sim.Work, moves kv.Moves) (total des.Time) {
	p, err := Load(gpu, engine, ch)
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDevice(p, m, opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range works {
		w := &works[i]
		s := sim.Step{Index: int64(i), Start: total, Requests: w.Decodes + len(w.Prefill),
			Sampled: w.Decodes, DRAMBytes: 1 << 34}
		if err := d.Begin(&s); err != nil {
			t.Fatal(err)
		}
		for layer := range m.Layers {
			moves := moves
			moves.Layer = layer
			if w.Sparse {
				if err := d.Score(layer, w); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Move(&moves); err != nil {
				t.Fatal(err)
			}
			if err := d.Compute(layer, w); err != nil {
				t.Fatal(err)
			}
		}
		timing, err := d.Finish()
		if err != nil {
			t.Fatal(err)
		}
		total += timing.Elapsed
	}
	return total
}

// A card of which one figure is better is never slower, whatever the work, on any card
// under any engine. The card's clock follows its power, and shorter pauses cool it less: one
// percent is allowed for that. Saves that begin earlier, or that a faster CPU scatters faster, may
// slow more of the loads: by as much as both directions of the link exceed its duplex rate.
func TestLaw11BetterCard(t *testing.T) {
	m := mustModel(t, "llama3-8b")
	m.Layers = 2
	rapid.Check(t, func(t *rapid.T) {
		gpu, engine := machines(t)
		opts := DeviceOptions{Offload: true, LoadEngine: LoadFlash, SaveEngine: SaveFlash,
			SaveBufferBytes: 1 << 28}
		if rapid.Bool().Draw(t, "memcpy") {
			opts.LoadEngine, opts.SaveEngine = LoadMemcpy, SaveMemcpy
		}
		decodes := rapid.IntRange(0, 64).Draw(t, "decodes")
		context := rapid.IntRange(1, 60000).Draw(t, "context")
		works := []sim.Work{{Tokens: decodes, Decodes: decodes, DecodeTokens: int64(decodes * context)}}
		if rapid.Bool().Draw(t, "sparse") {
			works[0].Sparse, works[0].DecodeTokens, works[0].ScoredBlocks = true, int64(decodes*2048),
				int64(decodes*context/32)
		}
		if query := rapid.IntRange(0, 4096).Draw(t, "query"); query > 0 || decodes == 0 {
			works[0].Tokens += query + 1
			works[0].Prefill = []sim.Span{{Query: query + 1,
				Prefix: rapid.IntRange(0, 60000).Draw(t, "prefix")}}
		}
		works = append(works, works[0])
		moves := kv.Moves{Loads: int64(rapid.IntRange(0, 4000).Draw(t, "loads")),
			Saves: int64(rapid.IntRange(0, 4000).Draw(t, "saves")), BlockBytes: 16 << 10}
		factor := rapid.Float64Range(1, 4).Draw(t, "factor")
		c, err := LoadCard(gpu)
		if err != nil {
			t.Fatal(err)
		}
		before := steps(t, gpu, engine, nil, m, opts, works, moves)
		key := rapid.SampledFrom([]string{"peak_fp16", "hbm_bandwidth", "link_h2d", "link_d2h",
			"cpu_speed"}).Draw(t, "key")
		f := map[string]Figure{"peak_fp16": c.GPU.PeakFP16, "hbm_bandwidth": c.GPU.HBMBandwidth,
			"link_h2d": c.Link.H2D, "link_d2h": c.Link.D2H, "cpu_speed": c.CPU.Speed}[key]
		after := steps(t, gpu, engine, Changes{key: f.Value * factor}, m, opts, works, moves)
		up, down := c.Link.H2D.SI(), c.Link.D2H.SI()
		duplex := min(c.Link.DuplexCopy.SI(), c.Link.DuplexKernel.SI())
		loaded := float64(moves.Loads*moves.BlockBytes) * float64(m.Layers*len(works))
		overlap := loaded / up * max(0, (up+down)/duplex-1)
		if after.Seconds() > 1.01*before.Seconds()+overlap {
			t.Fatalf("%s under %s: %g times the %s takes %v in place of %v", gpu, engine, factor, key, after,
				before)
		}
	})
}

// Twice of what binds halves what it binds; twice of what does not changes nothing much.
func TestTwiceOfACard(t *testing.T) {
	m := mustModel(t, "llama3-8b")
	decode := sim.Work{Tokens: 32, Decodes: 32, DecodeTokens: 32 * 8192}
	prefill := sim.Work{Tokens: 8192, Prefill: []sim.Span{{Query: 8192}}}
	for _, gpu := range CardNames() {
		c, err := LoadCard(gpu)
		if err != nil {
			t.Fatal(err)
		}
		twice := func(key string) Changes {
			return Changes{key: 2 * map[string]Figure{"peak_fp16": c.GPU.PeakFP16,
				"hbm_bandwidth": c.GPU.HBMBandwidth, "link_h2d": c.Link.H2D,
				"cpu_speed": c.CPU.Speed}[key].Value}
		}
		flash := DeviceOptions{Offload: true, LoadEngine: LoadFlash, SaveEngine: SaveFlash,
			SaveBufferBytes: 1 << 30}
		loads := kv.Moves{Loads: 200000, BlockBytes: 16 << 10}
		for _, x := range []struct {
			what, engine, key string
			opts              DeviceOptions
			work              sim.Work
			moves             kv.Moves
			low, high         float64 // of the time with twice the figure, as a share
		}{
			{"decode", "vllm-0.15", "hbm_bandwidth", DeviceOptions{}, decode, kv.Moves{}, 0.5, 0.68},
			{"decode", "vllm-0.15", "peak_fp16", DeviceOptions{}, decode, kv.Moves{}, 0.93, 1},
			{"decode", "vllm-0.15", "cpu_speed", DeviceOptions{}, decode, kv.Moves{}, 1, 1},
			{"decode", "vllm-0.5", "cpu_speed", DeviceOptions{}, decode, kv.Moves{}, 0.7, 0.99},
			{"prefill", "vllm-0.15", "peak_fp16", DeviceOptions{}, prefill, kv.Moves{}, 0.5, 0.65},
			{"prefill", "vllm-0.15", "hbm_bandwidth", DeviceOptions{}, prefill, kv.Moves{}, 0.9, 1},
			{"loads", "sparseserve-live", "link_h2d", flash, decode, loads, 0.5, 0.6},
		} {
			work := []sim.Work{x.work}
			before := steps(t, gpu, x.engine, nil, m, x.opts, work, x.moves)
			after := steps(t, gpu, x.engine, twice(x.key), m, x.opts, work, x.moves)
			if share := float64(after) / float64(before); share < x.low || share > x.high {
				t.Errorf("%s under %s, %s: twice the %s takes %.3f of the time, want %g to %g", gpu, x.engine,
					x.what, x.key, share, x.low, x.high)
			}
		}
	}
}

func TestChangesErrors(t *testing.T) {
	for _, c := range []struct {
		changes Changes
		want    []string
	}{
		{Changes{"hbm_bandwidth": 0}, []string{"card.hbm_bandwidth", "from 0.001", "GB/s"}},
		{Changes{"peak_fp16": math.NaN()}, []string{"card.peak_fp16", "from 0.001", "TFLOP/s"}},
		{Changes{"link_h2d": math.Inf(1)}, []string{"card.link_h2d"}},
		{Changes{"cpu_speed": -1}, []string{"card.cpu_speed"}},
		{Changes{"hbm_bandwith": 1}, []string{"card.hbm_bandwith", `did you mean "hbm_bandwidth"?`}},
		{Changes{"clock": 1}, []string{"card.clock", "known: peak_fp16"}},
		{Changes{"link_h2d": 70, "link_nominal": 64},
			[]string{"card.link_h2d", "no copy is faster than its link", "70 GB/s, nominal is 64 GB/s"}},
		{Changes{"link_nominal": 20}, []string{"card.link_nominal", "nominal is 20 GB/s"}},
		{Changes{"link_duplex_copy": 130},
			[]string{"card.link_duplex_copy", "twice nominal is 128 GB/s"}},
	} {
		_, err := Load("h200", "vllm-0.15", c.changes)
		wantError(t, c.want[0], err, c.want...)
	}
	_, err := Load("h1", "vllm-0.15", nil)
	wantError(t, "h1", err, `unknown gpu "h1"`)
	_, err = Load("rtx", "vllm-0.15", nil)
	wantError(t, "half a name", err, `did you mean "rtx-4090" or "rtx-5090" or "rtx-pro-6000"?`)
	_, err = Load("h200", "vllm-0.16", nil)
	wantError(t, "no engine", err, `unknown engine "vllm-0.16"; known: `)
}

// A faster link takes both directions' sum and its nominal speed along.
func TestChangedLink(t *testing.T) {
	c, err := LoadCard("a100-40gb")
	if err != nil {
		t.Fatal(err)
	}
	got := c.with(Changes{"link_h2d": 2 * 25.1, "link_d2h": 50})
	for what, r := range map[string][2]Figure{
		"nominal":       {got.Link.Nominal, c.Link.Nominal},
		"duplex_copy":   {got.Link.DuplexCopy, c.Link.DuplexCopy},
		"duplex_kernel": {got.Link.DuplexKernel, c.Link.DuplexKernel},
	} {
		if math.Abs(r[0].SI()/r[1].SI()-2) > 1e-3 {
			t.Errorf("%s: %g of %g", what, r[0].SI(), r[1].SI())
		}
	}
	if got := c.with(Changes{"link_h2d": 50, "link_nominal": 40}); got.Link.Nominal.Value != 40 {
		t.Errorf("nominal %v, set to 40", got.Link.Nominal.Value)
	}
	hopper, err := LoadCard("h200")
	if err != nil {
		t.Fatal(err)
	}
	if got := hopper.with(Changes{"peak_fp16": 2 * 989}); got.GPU.PeakFP8.Value != 2*1979 {
		t.Errorf("peak of FP8 %v with twice the peak of FP16", got.GPU.PeakFP8.Value)
	}
	if c.Link.H2D.Value != 25.1 {
		t.Error("the card itself has changed")
	}
}
