package hw

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"sparseserve/sim"
)

// How 264 CTAs share some batches, as the kernel does.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		name     string
		heads    int
		contexts []int32
		want     cut
	}{
		// 8 x (57 + 456) blocks: pieces of 16, 4 and 29 of them.
		{"two of 1:8", 8, []int32{1820, 14564}, cut{true, 29, 4 - 4104./(4*264)}},
		{"the same in halves", 8, []int32{8192, 8192}, cut{true, 16, 0}},
		// 188 blocks in 16 pieces of 12: three a warp.
		{"no whole number", 8, []int32{6016, 6016}, cut{true, 16, 3 - 2*8*188./(4*256)}},
		{"one request", 8, []int32{5704}, cut{true, 30, 2 - 8*179./(4*240)}},
		{"short", 8, []int32{32, 100}, cut{true, 1, 1 - 8*5./(4*16)}},
		// 96 units of which 264 CTAs have 2.75 each: 94 blocks an equal share, 110 the least piece.
		{"three of many heads", 32, []int32{3510, 7020, 14040}, cut{false, 4, 0}},
	} {
		if got := cutOf(c.contexts, c.heads, 264); got.whole != c.want.whole || got.parts != c.want.parts || math.Abs(got.over-c.want.over) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// uncut is the H200 with figures of unequal contexts.
func uncut(t *testing.T) *Profile {
	p := plainH200(t)
	p.DenseDecode.Merge, p.DenseDecode.CTAs = ns(100), count(264, "CTAs")
	p.DenseDecode.Tail, p.DenseDecode.Piece, p.DenseDecode.Pages = us(1.5), us(4), us(0.5)
	return p
}

// What unequal contexts add to equal ones of the same sum.
func TestUnequalContexts(t *testing.T) {
	p := uncut(t)
	for _, c := range []struct {
		name     string
		model    string
		contexts []int32
		extra    float64 // us, beside pages
	}{
		{"13 pieces of 4 query heads more", "llama3-8b", []int32{1820, 14564}, 4*13*0.1 + 1.5*(4-4104./(4*264))},
		{"equal ones", "llama3-8b", []int32{8192, 8192}, 0},
		{"equal ones that no CTAs have a whole number of", "lwm-7b", []int32{8192, 8192, 8192}, 0},
		{"two pieces a CTA", "lwm-7b", []int32{3510, 7020, 14040}, 2*0.1 + 4},
		{"more lists than CTAs", "lwm-7b", []int32{100, 200, 300, 400, 500, 600, 700, 800, 9000}, 0},
	} {
		m, sum := mustModel(t, c.model), int64(0)
		for _, n := range c.contexts {
			sum += int64(n)
		}
		equal := p.DenseDecodeSeconds(m, sum, len(c.contexts))
		got := p.DenseBatchSeconds(m, c.contexts)
		if extra := (got-equal)*1e6 - 0.5; math.Abs(extra-c.extra) > 1e-6 {
			t.Errorf("%s: %.3f us more, want %.3f", c.name, extra, c.extra)
		}
		d, err := NewDevice(p, m, DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		timing := runStep(t, d, &sim.Step{}, 1, &sim.Work{Decodes: len(c.contexts), DecodeTokens: sum, Contexts: c.contexts}, 0, 0)
		if timing.Phases.DenseAttention != nanoseconds(got) {
			t.Errorf("%s: the device says %v, want %v", c.name, timing.Phases.DenseAttention, nanoseconds(got))
		}
	}
}

// Without the figures contexts change nothing, nor does a batch that is told as a
// sum; with them no batch is faster than equal contexts.
func TestContextsNeverMakeDecodeFaster(t *testing.T) {
	with, without := uncut(t), plainH200(t)
	rapid.Check(t, func(t *rapid.T) {
		m, err := LoadModel(rapid.SampledFrom([]string{"lwm-7b", "llama3-8b", "yi-9b-200k"}).Draw(t, "model"))
		if err != nil {
			t.Fatal(err)
		}
		contexts, sum := make([]int32, rapid.IntRange(1, 70).Draw(t, "requests")), int64(0)
		for i := range contexts {
			contexts[i] = rapid.Int32Range(1, 40000).Draw(t, "context")
			sum += int64(contexts[i])
		}
		if got, want := without.DenseBatchSeconds(&m, contexts), without.DenseDecodeSeconds(&m, sum, len(contexts)); got != want {
			t.Fatalf("%g s, as a sum %g", got, want)
		}
		if got, least := with.DenseBatchSeconds(&m, contexts), with.DenseDecodeSeconds(&m, sum, len(contexts)); got < least {
			t.Fatalf("%v: %g s, equal ones %g", contexts, got, least)
		}
	})
}
