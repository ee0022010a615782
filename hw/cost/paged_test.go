package cost

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// A chunk that reads its prefix from the paged cache runs in whole waves of CTAs: 512 tokens of 32
// heads are 256 CTAs, 2.4 waves of 108, and take three.
func TestPagedChunksRunInWaves(t *testing.T) {
	p, m := mustProfile(t, "a100-40gb"), mustModel(t, "llama2-7b")
	paged := newPrefillAttention(p, m, 0)
	other := *p
	other.Paged = hw.PagedPrefill{}
	contiguous := newPrefillAttention(&other, m, 0)
	seconds := func(a *prefillAttention, query, prefix int) float64 {
		s, _ := a.of([]sim.Span{{Query: query, Prefix: prefix}})
		return s
	}
	for _, c := range []struct {
		query int
		waves float64
	}{{512, 3}, {1024, 5}, {2048, 10}, {64, 1}, {65, 1}, {200, 2}} {
		s := sim.Span{Query: c.query, Prefix: 1 << 20}
		tiles := c.waves * 108 / 32 * 64 // query tokens that as many waves hold
		want := 4 * 4096 * tiles * (float64(s.Prefix) + float64(c.query)/2) / 168e12
		if got := paged.waves(s); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("%d tokens take %g s, want %g s, %g waves", c.query, got, want, c.waves)
		}
	}
	for _, prompt := range []int{512, 12600, 32768} {
		if a, b := seconds(&paged, prompt, 0), seconds(&contiguous, prompt, 0); a != b {
			t.Errorf("a prompt of %d tokens without a prefix takes %g s, and %g s without a kernel for "+
				"paged KV", prompt, a, b)
		}
	}
	if slower := seconds(&paged, 512, 8192) /
		seconds(&contiguous, 8192, 8192) * 16 * 12288 / 8448; slower < 1.25 || slower > 1.35 {
		t.Errorf("512 tokens of a long prefix take %.3f times as long as in a long chunk, want 3 waves "+
			"for 2.37", slower)
	}
	rapid.Check(t, func(t *rapid.T) {
		query, prefix := rapid.IntRange(1, 4096).Draw(t, "query"),
			rapid.IntRange(1, 65536).Draw(t, "prefix")
		now := seconds(&paged, query, prefix)
		if now < seconds(&contiguous, query, prefix) {
			t.Fatalf("%d after %d: faster with waves", query, prefix)
		}
		if now > seconds(&paged, query+1, prefix) || now > seconds(&paged, query, prefix+1) {
			t.Fatalf("%d after %d: a token more takes less", query, prefix)
		}
	})
}

// A long chunk of a long prompt loses at most a sixth of a whole prompt's rate on every engine,
// because one kernel does both. Copies of blocks were timed on an H200 and are assumed to take as
// long on any card. A card whose SMs compute faster than an H200's waits for them, so there the
// sixth holds for the arithmetic alone.
func TestChunksKeepTheRateOfPrompts(t *testing.T) {
	m := mustModel(t, "llama3-8b")
	perSM := func(p *hw.Profile) float64 { return p.GPU.PeakFP16.SI() / p.GPU.SMs.SI() }
	copiesTimed := perSM(mustProfile(t, "h200"))
	waits := 0
	for _, gpu := range hw.CardNames() {
		for _, engine := range hw.EngineNames() {
			p, err := hw.Load(gpu, engine, nil)
			if err != nil { // not every engine has kernels for every card
				continue
			}
			a := newPrefillAttention(p, m, 16)
			if a.copy > 0 && perSM(p) > copiesTimed {
				a.copy = 0
				waits++
			}
			rate := func(s sim.Span) float64 {
				seconds, _ := a.of([]sim.Span{s})
				return a.spanFLOPs(s) / seconds
			}
			whole, chunk := rate(sim.Span{Query: 8192}), rate(sim.Span{Query: 8192, Prefix: 24576})
			t.Logf("%s, %s: %.0f TFLOP/s, a later chunk %.0f", gpu, engine, whole/1e12, chunk/1e12)
			if chunk < whole*5/6 {
				t.Errorf("%s, %s: a prompt of 8,192 tokens runs at %.0f TFLOP/s, a chunk as long at %.0f",
					gpu, engine, whole/1e12, chunk/1e12)
			}
		}
	}
	if waits == 0 {
		t.Error("no card computes faster than the one whose copies were timed: drop the exception")
	}
}

// A chunk of fewer CTAs than SMs takes what one of them takes, however few heads there are.
func TestFewHeadsTakeAsLongAsOneCTA(t *testing.T) {
	p, m := mustProfile(t, "h200"), *mustModel(t, "llama3-8b")
	seconds := func(heads, query int) float64 {
		m.QHeads = heads
		s, _ := PrefillSeconds(p, &m, nil, sim.Span{Query: query, Prefix: 8192}, 32)
		return s
	}
	one := seconds(32, 128)
	for _, heads := range []int{4, 8, 16} {
		for _, query := range []int{128, 256, 512, 1024} {
			if got := seconds(heads, query); got < one*(1-1e-9) {
				t.Errorf("%d queries of %d heads take %g s, one tile of queries %g", query, heads, got, one)
			}
		}
	}
}
