package hw

import (
	"math"
	"testing"

	"sparseserve/sim"
)

// Digests cost a launch for each request and the bytes of K, at HBM's rate at
// most, in the device too; nothing where the profile does not know.
func TestDigests(t *testing.T) {
	p, m := mustProfile(t, "a100-40gb"), mustModel(t, "lwm-7b")
	if got := p.DigestSeconds(m, 3, 4096); got != 0 {
		t.Errorf("without figures: %g s", got)
	}
	w := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048}}, Digests: 2, DigestTokens: 2048 + 32, Sparse: true}
	step := func() sim.Timing {
		d, err := NewDevice(p, m, DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return runStep(t, d, &sim.Step{}, 2, &w, 0, 0)
	}
	before := step()
	p.Digest = Digest{us(3), Figure{1000, "GB/s", Measured, "test"}}
	// K of a token is 32 heads of 128 fp16 values.
	want := 2*3e-6 + (2048+32)*8192/1e12
	if got := p.DigestSeconds(m, 2, 2048+32); math.Abs(got-want) > 1e-12 {
		t.Errorf("two requests: %g s, want %g", got, want)
	}
	after := step()
	if got := (after.Phases.Scoring - before.Phases.Scoring).Seconds(); math.Abs(got-2*want) > 3e-9 || after.Elapsed-before.Elapsed != after.Phases.Scoring-before.Phases.Scoring {
		t.Errorf("in two layers scoring takes %g s longer and the step %v, want %g", got, after.Elapsed-before.Elapsed, 2*want)
	}
	p.Digest.Rate.Value = 1e6
	if got := p.DigestSeconds(m, 1, 1<<20); got < (1<<20)*8192/p.GPU.HBMBandwidth.SI() {
		t.Errorf("%g s beats HBM", got)
	}
	p.Digest.Launch = Figure{}
	if path, err := p.validate(); path != "digest.rate" || err == nil {
		t.Errorf("a rate without a launch: %s, %v", path, err)
	}
}

// Above the grid linears and the LM head take what the next multiple takes; at
// most of it, and on profiles without one, what they took.
func TestLinearGrid(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	p.LinearGrid = Figure{}
	plain := *p
	p.LinearGrid = count(64, "tokens")
	for _, c := range []struct{ tokens, as int }{{1, 1}, {33, 33}, {64, 64}, {65, 128}, {127, 128}, {128, 128}, {1000, 1024}, {2049, 2112}, {40000, 40000}} {
		if got, want := p.LinearsSeconds(m, c.tokens), plain.LinearsSeconds(m, c.as); got != want {
			t.Errorf("%d tokens take %g s, want those of %d, %g", c.tokens, got, c.as, want)
		}
		if got, want := p.HeadSeconds(m, 0, c.tokens), plain.HeadSeconds(m, 0, c.as); got != want {
			t.Errorf("%d rows of the LM head take %g s, want those of %d, %g", c.tokens, got, c.as, want)
		}
	}
}
