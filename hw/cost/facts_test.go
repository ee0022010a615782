package cost

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// fact is one published or measured figure next to the model's.
type fact struct {
	name      string
	low, high float64 // the figure; low == high for a single number
	got       float64
	tolerance float64 // relative, beyond low and high
}

func near(name string, want, got float64) fact { return fact{name, want, want, got, 0.10} }

func between(name string, low, high, got float64) fact { return fact{name, low, high, got, 0.10} }

func below(name string, limit, got float64) fact { return fact{name, 0, limit, got, 0} }

func above(name string, limit, got float64) fact { return fact{name, limit, math.Inf(1), got, 0} }

// report prints the table and fails on each figure that is missed.
func report(t *testing.T, facts []fact) {
	t.Helper()
	for _, f := range facts {
		want := fmt.Sprintf("%.4g", f.low)
		if f.low != f.high {
			want = fmt.Sprintf("%.4g-%.4g", f.low, f.high)
		}
		off := 0.0
		if f.got < f.low {
			off = f.got/f.low - 1
		} else if f.got > f.high {
			off = f.got/f.high - 1
		}
		t.Logf("%-58s %12s %10.4g %+6.1f %%", f.name, want, f.got, 100*off)
		if !(math.Abs(off) <= f.tolerance) {
			t.Errorf("%s: want %s within %.0f %%, got %.4g", f.name, want, 100*f.tolerance, f.got)
		}
	}
}

func mustProfile(t testing.TB, name string) *hw.Profile {
	t.Helper()
	p, err := hw.Load(name, engineOf(name), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustModel(t testing.TB, name string) *llm.Model {
	t.Helper()
	m, err := llm.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

func ms(seconds float64, _ bool) float64 { return 1e3 * seconds }

// tflops returns a chunk's rate in TFLOP/s.
func tflops(a prefillAttention, query, prefix int) float64 {
	s := sim.Span{Query: query, Prefix: prefix}
	t, _ := a.of([]sim.Span{s})
	return a.spanFLOPs(s) / t * 1e-12
}

// gbps returns a stream's rate over requests of some tokens each in GB/s.
func gbps(k memoryBound, requests, tokens float64) float64 {
	n := requests * tokens
	return n * k.bytesEach / k.of(n, requests) * 1e-9
}

func TestFactsA100(t *testing.T) {
	m := mustModel(t, "llama2-7b")
	var facts []fact
	for _, card := range []struct {
		name string
		gib  float64
		hbm  float64 // GB/s
	}{{"a100-80gb", 80, 2039}, {"a100-40gb", 40, 1555}} {
		p := mustProfile(t, card.name)
		scale := 2039 / card.hbm // of times bound by HBM
		row := func(format string,
			args ...any) string {
			return card.name + " " + fmt.Sprintf(format, args...)
		}
		facts = append(facts,
			near(row("peak fp16, TFLOP/s"), 312, p.GPU.PeakFP16.SI()*1e-12),
			near(row("HBM, GB/s"), card.hbm, p.GPU.HBMBandwidth.SI()*1e-9),
			near(row("HBM, GiB"), card.gib, p.GPU.HBMSize.SI()/(1<<30)),
			near(row("L2, MB"), 40, p.GPU.L2Size.SI()*1e-6),
			near(row("link nominal, GB/s"), 32, p.Link.Nominal.SI()*1e-9),
			near(row("link H2D achieved, GB/s"), 25, p.Link.H2D.SI()*1e-9),
			near(row("link D2H achieved, GB/s"), 25, p.Link.D2H.SI()*1e-9),
		)
		lin, pw := newGEMM(p, m), newElementwise(p, m)
		for _, r := range []struct{ tokens, want float64 }{
			{1, 0.266 * scale}, {128, 0.352 * scale}, {1024, 1.959}, {4096, 7.492},
		} {
			facts = append(facts, near(row("linears, %.0f tokens, ms", r.tokens), r.want,
				ms(lin.of(r.tokens))))
		}
		flops := 2 * 4096 * float64(m.LayerLinears())
		lt, _ := lin.of(4096)
		facts = append(facts, near(row("linears, 4096 tokens, TFLOP/s"), 221, flops/lt*1e-12))
		for _, r := range []struct{ tokens, want float64 }{{1, 0.024}, {2048, 0.347 * scale},
			{4096, 0.70 * scale}} {
			facts = append(facts, near(row("norm+rope+act+residual, %.0f tokens, ms", r.tokens), r.want,
				ms(pw.of(r.tokens))))
		}
		flashInfer := *p // splits the KV of short chunks
		flashInfer.Paged = hw.PagedPrefill{}
		pre := newPrefillAttention(&flashInfer, m, 0)
		for _, prefix := range []int{0, 2048, 8192, 32768, 131072} {
			for _, query := range []int{2048, 4096, 8192} {
				facts = append(facts, between(row("prefill attention, %d after %d, TFLOP/s", query, prefix),
					159, 171, tflops(pre, query, prefix)))
			}
		}
		facts = append(facts, near(row("prefill attention, 512 after 0, TFLOP/s"), 89,
			tflops(pre, 512, 0)))
		for _, prefix := range []int{2048, 8192, 32768} {
			facts = append(facts, between(row("prefill attention, 512 after %d, TFLOP/s", prefix), 148, 158,
				tflops(pre, 512, prefix)))
		}
		dense := newDense(p, m)
		for _, r := range []struct {
			batch, context float64
			want           float64
		}{{1, 1024, 309}, {1, 8192, 1061}, {8, 8192, 1429}, {64, 8192, 1489}} {
			bytes := r.batch * r.context * dense.bytesEach
			want := r.want
			if scale != 1 { // the 43 us launch is common to both cards
				want = bytes / (43e-6 + (bytes/(r.want*1e9)-43e-6)*scale) * 1e-9
			}
			facts = append(facts, near(row("decode attention, %.0f x %.0f, GB/s", r.batch, r.context), want,
				gbps(dense, r.batch, r.context)))
		}
		for _, pool := range []float64{0.25, 1, 10, 64, 224} {
			rate := loadGBps(t, p, LoadFlash, 1<<16, 16<<10, pool)
			facts = append(facts,
				near(row("zero-copy reads, pool %.4g GiB, share of the link", pool), 0.93, rate/25.1),
				near(row("memcpy over FlashH2D, pool %.4g GiB", pool), 9.97,
					rate/loadGBps(t, p, LoadMemcpy, 1<<16, 16<<10, pool)))
		}
		for _, kib := range []int64{2, 4, 8, 16} {
			facts = append(facts,
				above(row("FlashH2D, %d KiB blocks, GB/s", kib), 20,
					loadGBps(t, p, LoadFlash, 10000, kib<<10, 0.25)),
				above(row("FlashD2H, %d KiB blocks, GB/s", kib), 23,
					saveGBps(t, p, SaveFlash, 10000, kib<<10, 0)),
				below(row("memcpy D2H, %d KiB blocks, GB/s", kib), 6,
					saveGBps(t, p, SaveMemcpy, 10000, kib<<10, 0)),
			)
		}
		facts = append(facts,
			below(row("memcpy H2D, 16 KiB blocks, GB/s"), 4,
				loadGBps(t, p, LoadMemcpy, 10000, 16<<10, 0.25)),
			near(row("memcpy H2D in serving, 16 KiB, us a block"), 7,
				16.384/loadGBps(t, p, LoadMemcpy, 10000, 16<<10, 0.25)),
			near(row("memcpy H2D in serving, 16 KiB, GB/s"), 2.3,
				loadGBps(t, p, LoadMemcpy, 10000, 16<<10, 0.25)),
		)
	}
	report(t, facts)
}

// PSA's decode iterations, at the profile's reference condition: one dense request at 32k tokens.
func TestFactsDecodeIteration(t *testing.T) {
	p := mustProfile(t, "a100-40gb")
	var facts []fact
	for _, r := range []struct {
		model string
		ms    float64
	}{{"lwm-7b", 30}, {"llama3.1-8b", 20}} {
		got, err := ReferenceIteration(p, mustModel(t, r.model))
		if err != nil {
			t.Fatal(err)
		}
		facts = append(facts, near("a100-40gb decode iteration, 1 x 32k, "+r.model+", ms", r.ms,
			got.Seconds()*1e3))
	}
	report(t, facts)
}

// The profile's own measurements next to earlier ones on such a card: cuBLAS
// and flash-2 in PyTorch, plain transfer kernels, and a contiguous stand-in for
// sparse decode. Where both timed the same they agree within 10 %; where this
// project's kernel is another one, it is held to being no slower.
func TestFactsH200(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	facts := []fact{
		near("h200 peak fp16, TFLOP/s", 989, p.GPU.PeakFP16.SI()*1e-12),
		near("h200 HBM, GB/s", 4800, p.GPU.HBMBandwidth.SI()*1e-9),
		near("h200 HBM, GiB", 141, p.GPU.HBMSize.SI()/(1<<30)),
		near("h200 link H2D achieved, GB/s", 55.2, p.Link.H2D.SI()*1e-9),
		near("h200 link D2H achieved, GB/s", 55.0, p.Link.D2H.SI()*1e-9),
	}
	flash, err := newLoader(p, LoadFlash)
	if err != nil {
		t.Fatal(err)
	}
	flash.over(1 << 27)
	gather := func(blocks int64) float64 { return 1e6 * flash.seconds(blocks, 16<<10) }
	// launch and wait, and the plain kernel
	facts = append(facts, between("h200 gather of one 16 KiB block, us", 7.7, 15.7, gather(1)))
	first, err := hw.Load("h200", "vllm-0.5", nil) // of the host of these figures
	if err != nil {
		t.Fatal(err)
	}
	old, err := newLoader(first, LoadFlash)
	if err != nil {
		t.Fatal(err)
	}
	old.over(1 << 27)
	for _, r := range []struct {
		blocks int64
		us     float64
	}{{16, 17}, {64, 31}, {256, 94}, {1024, 339}} {
		// Submit and wait, CPU time, were 10.3 us of these, and 7.7 us since.
		// On the built-in card's host, where an empty kernel takes 8.4 us, they are longer: 18.1, 34.5,
		// 96.5 and 344 us (hw/kernels/hopper.csv.gz).
		name := fmt.Sprintf("h200 gather of %d 16 KiB blocks, us", r.blocks)
		facts = append(facts,
			between(name+", first host", r.us-2.6, r.us, 1e6*old.seconds(r.blocks, 16<<10)),
			between(name, r.us-2.6, r.us+5, gather(r.blocks)))
	}
	lin, dense, sparse := newGEMM(p, m), newDense(p, m), newSparse(p, m)
	weights := 2 * float64(m.LayerLinears())
	facts = append(facts,
		// Few tokens read the weights. The earlier times, 0.191 and 0.199 ms,
		// have four launches from Python in them, which a server's graphs do not.
		between("h200 linears, 1 token, ms", 1e3*weights/4.2e12, 0.191, ms(lin.of(1))),
		between("h200 linears, 128 tokens, ms", 1e3*weights/4.2e12, 0.199, ms(lin.of(128))),
		// Many tokens draw the card's whole power: its clocks fall after the first hundredths of a
		// second, in which 1.14 and 4.45 ms were measured.
		between("h200 linears, 2048 tokens, ms", 1.14, 1.2*1.14, ms(lin.of(2048))),
		between("h200 linears, 8192 tokens, ms", 4.45, 1.2*4.45, ms(lin.of(8192))),
	)
	for _, r := range []struct{ batch, gbps float64 }{{1, 820}, {8, 3200}, {32, 4000}} {
		facts = append(facts, above(fmt.Sprintf("h200 sparse decode, batch %.0f x 2048, GB/s", r.batch),
			r.gbps, gbps(sparse, r.batch, 2048)))
	}
	for _, r := range []struct {
		threads int
		gbps    float64
	}{{4, 13}, {8, 20}, {16, 23}} {
		facts = append(facts, above(fmt.Sprintf(
			"h200 FlashD2H over memcpy, then scatter, %d threads, GB/s", r.threads), r.gbps,
			saveGBps(t, p, SaveFlash, 8192, 16<<10, r.threads)))
	}
	facts = append(facts,
		near("h200 gather of 8192 16 KiB blocks, GB/s", 50.7,
			loadGBps(t, p, LoadFlash, 8192, 16<<10, 0.125)),
		// A call is CPU time: 3.4 us and 2.8 to 3.1 us on machines of this kind.
		between("h200 memcpy H2D, 16 KiB blocks, us a call", 2.8, 3.4,
			16.384/loadGBps(t, p, LoadMemcpy, 8192, 16<<10, 0.125)),
		between("h200 memcpy H2D, 16 KiB blocks, GB/s", 4.9, 5.9,
			loadGBps(t, p, LoadMemcpy, 8192, 16<<10, 0.125)),
		// The profile's samples have 5.9 at 8192 blocks and 7.2 at 256: a call of
		// a long queue is slower, and the fit is between.
		between("h200 memcpy D2H, 16 KiB blocks, GB/s", 5.6, 7.2,
			saveGBps(t, p, SaveMemcpy, 8192, 16<<10, 0)),
		above("h200 GPU scatter, 16 KiB blocks, GB/s", 47.3, saveGBps(t, p, SaveGPU, 8192, 16<<10, 0)),
		// Measured on another day than the calibration: cuda/measured/h200-prefill.txt.
		near("h200 prefill attention, 8k, TFLOP/s", 567, tflops(newPrefillAttention(p, m, 0), 8192, 0)),
		near("h200 prefill attention, 32k, TFLOP/s", 567, tflops(newPrefillAttention(p, m, 0), 32768, 0)),
		near("h200 dense decode, 8 x 8k, GB/s", 4200, gbps(dense, 8, 8192)),
	)
	report(t, facts)
}

// engineOf is the engine that a card's figures were first put together with.
func engineOf(card string) string {
	if card == "h200" {
		return "sparseserve-live"
	}
	return "vllm-0.5"
}

// classModels are built-in models of every class and many sizes, which the laws try.
var classModels = []string{"codellama-34b", "deepseek-v3.2", "deepseek-v3", "gemma2-9b", "glm-4.5",
	"glm-5.2", "glm-5", "glm4-9b-1m", "gpt-oss-120b", "gpt-oss-20b", "llama2-7b", "llama3-8b-1m",
	"llama3-8b", "llama3.1-8b", "lwm-7b", "mixtral-8x7b", "phi3-mini-128k", "qwen2-7b", "qwen3-14b",
	"qwen3-235b-a22b", "qwen3-30b-a3b", "yi-9b-200k"}

func wantError(t *testing.T, name string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: want an error with %q", name, parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: want %q in: %v", name, p, err)
		}
	}
}
