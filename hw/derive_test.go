package hw

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw/builtin"
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
	four, more := b200.GridOf(GridGEMM, "nvfp4"), b300.GridOf(GridGEMM, "nvfp4")
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
