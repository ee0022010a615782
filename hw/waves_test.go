package hw

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// How the kernel splits lists on an H200, 264 CTAs at once, by its own formula.
func TestDecodeWaves(t *testing.T) {
	for _, c := range []struct {
		lists, tokens float64
		want          DecodeWaves
	}{
		{32, 2048, DecodeWaves{8, 1, 256, 8}},
		{96, 2048, DecodeWaves{5, 2, 216, 13}},    // 2 x 17 < 1 x 36 of two CTAs each, or 2 x 20 of four
		{128, 2048, DecodeWaves{2, 1, 256, 32}},   // 36; 4 x 12 of eight
		{192, 2048, DecodeWaves{4, 3, 240, 16}},   // 60 < 68 uncut
		{224, 2048, DecodeWaves{1, 1, 224, 64}},   // 68 < 4 x 20
		{448, 2048, DecodeWaves{1, 2, 184, 64}},   // 136
		{2048, 4096, DecodeWaves{1, 8, 200, 128}}, // many waves anyhow
		{8, 128, DecodeWaves{1, 1, 8, 4}},         // no CTA has less than four blocks
	} {
		if got := DecodeWavesOf(264, c.lists, c.tokens); got != c.want {
			t.Errorf("%g lists of %g tokens: %+v, want %+v", c.lists, c.tokens, got, c.want)
		}
	}
}

// Waves but the first cost their figure, on top of launch, bytes and merging.
func TestDecodeWavesCost(t *testing.T) {
	lwm := mustModel(t, "lwm-7b")
	p := plainH200(t)
	seconds := func(requests int) float64 {
		return Seconds(p.Costs(lwm).SparseDecode,
			sim.Work{DecodeTokens: int64(requests * 2048), Decodes: requests})
	}
	before := map[int]float64{}
	for _, n := range []int{4, 3, 6, 7, 14} {
		before[n] = seconds(n)
	}
	p.SparseDecode.Merge, p.SparseDecode.Wave = ns(100), us(1)
	for n, want := range map[int]float64{4: 0.1, 3: 1 + 0.1, 6: 2 + 0.1, 7: 0, 14: 1} {
		if got := (seconds(n) - before[n]) * 1e6; math.Abs(got-want) > 1e-6 {
			t.Errorf("%d requests: %.3f us more, want %.3f", n, got, want)
		}
	}
}
