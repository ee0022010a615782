package hw

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"sparseserve/sim"
)

// unevenPSA is the H200 with figures of lists that end in different rounds.
func unevenPSA(t interface{ Fatal(...any) }) *Profile {
	p, err := Load("h200", "sparseserve-live", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.PSADecode = PSADecode{Launch: us(7), PerHead: ns(8), Round: us(2), PerBlock: ns(100), Relaunch: us(1.5), Rate: Figure{4096, "GB/s", Measured, "test"}, Alone: ns(400)}
	p.PSADecode.Few = PSAFew{Room: Figure{132, "lists", Measured, "test"}, Wave: Figure{64, "blocks", Measured, "test"}, Launch: us(8), Query: us(1), NextWave: us(1.5),
		WaveQuery: ns(500), Rate: Figure{4096, "GB/s", Measured, "test"}, Alone: us(1.25), Full: Figure{62, "lists", Measured, "test"}}
	return p
}

// Rounds that few lists reach take what one CTA or cluster takes alone.
func TestUnevenRoundsByHand(t *testing.T) {
	p := unevenPSA(t)
	const block = 16384 / 4.096e3 // us of HBM: 4 ns
	for _, c := range []struct {
		name     string
		model    string
		requests int
		reach    []int
		want     float64 // us
	}{
		// 192 lists: a round's own time is 2 + 16 x 0.1, that of a CTA alone 16 x 0.4.
		{"one CTA a list", "lwm-7b", 6, []int{192, 96, 32}, 7 + 192*0.008 + 192*16*block/1e3 + 6.4 + 6.4},
		{"the same, all to the end", "lwm-7b", 6, []int{192, 192}, 7 + 192*0.008 + 2*192*16*block/1e3},
		// 32 lists, clusters of four CTAs: a wave of 4 rounds is 4 blocks of a warp.
		{"clusters", "lwm-7b", 1, []int{32, 16, 8, 4, 1}, 8 + 1 + 5 + 2 + 1.25},
		{"clusters, all in the first wave", "lwm-7b", 1, []int{32, 32, 32, 32, 1}, 8 + 1 + 32*64*block/1e3 + 2 + 1.25},
		// 64 lists are more than there are clusters of four for: a wave is 2 rounds.
		{"half clusters", "lwm-7b", 2, []int{64, 32, 8, 4}, 8 + 1 + 96*16*block/1e3 + 2 + 5},
		// 8 lists, clusters of eight: 2 blocks of a warp, and less than 8 lists can use.
		{"clusters of eight", "llama3-8b", 1, []int{8, 2, 1, 1}, 8 + 4 + 8*64*block/1e3},
	} {
		got, known := p.PSARoundsSeconds(mustModel(t, c.model), c.requests, 16, c.reach)
		if !known || math.Abs(got*1e6-c.want) > 1e-6 {
			t.Errorf("%s: %.4f us, want %.4f", c.name, got*1e6, c.want)
		}
	}
	if _, known := mustProfile(t, "a100-40gb").PSARoundsSeconds(mustModel(t, "lwm-7b"), 1, 16, []int{32}); known {
		t.Error("the A100 has no figures of PSA")
	}
}

// Lists that end early never make a layer longer than if they had gone on, nor
// shorter than their bytes would; where all go on to the end it costs what equal
// lists cost.
func TestUnevenRoundsLieBetweenEqualOnes(t *testing.T) {
	p := unevenPSA(t)
	plain := *p
	plain.PSADecode.Alone, plain.PSADecode.Few.Alone = Figure{}, Figure{}
	rapid.Check(t, func(t *rapid.T) {
		m, err := LoadModel(rapid.SampledFrom([]string{"lwm-7b", "llama3-8b", "yi-9b-200k"}).Draw(t, "model"))
		if err != nil {
			t.Fatal(err)
		}
		requests := rapid.IntRange(1, 40).Draw(t, "requests")
		micro := rapid.SampledFrom([]int{8, 16, 32}).Draw(t, "micro")
		reach, all := make([]int, rapid.IntRange(1, 20).Draw(t, "rounds")), requests*m.KVHeads
		equal := make([]int, len(reach))
		for i, left := 0, all; i < len(reach); i++ {
			left = rapid.IntRange(1, left).Draw(t, "left")
			if i == 0 {
				left = all
			}
			reach[i], equal[i] = left, all
		}
		price := func(p *Profile, reach []int) float64 {
			s, _ := p.PSARoundsSeconds(&m, requests, micro, reach)
			return s
		}
		got, bytes, longest, same := price(p, reach), price(&plain, reach), price(p, equal), price(&plain, equal)
		if math.Abs(longest/same-1) > 1e-9 {
			t.Fatalf("equal lists take %g s, without figures of uneven ones %g", longest, same)
		}
		if got < bytes*(1-1e-9) || got > longest*(1+1e-9) {
			t.Fatalf("%v of %d lists: %g s, their bytes %g, all to the end %g", reach, all, got, bytes, longest)
		}
	})
}

// The device prices the rounds of a step so.
func TestDevicePricesUnevenRounds(t *testing.T) {
	p, m := unevenPSA(t), mustModel(t, "lwm-7b")
	got := layerOfRounds(t, p, m, true, []sim.Round{{Tokens: 4 * 512}, {Tokens: 256}, {Tokens: 16}})
	want, _ := p.PSARoundsSeconds(m, 4, 16, []int{128, 16, 1})
	if want := nanoseconds(want) + nanoseconds(p.Host.KVWrite.SI()); got.Phases.SparseAttention != want {
		t.Errorf("%v, want %v", got.Phases.SparseAttention, want)
	}
}
