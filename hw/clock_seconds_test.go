package hw

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// Rested linears keep the full clock until the meter sees them, and then fall; worn ones
// rise by what runs.
func TestRestedLinears(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	withClock(p)
	p.Clock.MemoryBoundPower = count(0.8, "share")
	c := NewClockProbes(p, m, 32)
	low := Seconds(p.Costs(m).GEMM, sim.Work{Tokens: 2048})
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got/want-1) > 1e-3 {
			t.Errorf("%s: %g s, want %g", what, got, want)
		}
	}
	near("at once", c.Rested(2048, 0, 0, 0, 1), 0.9*low)
	near("shortly before the meter sees the limit", c.Rested(2048, 1.5e-3, 0, 0, 1), 0.9*low)
	near("long after it", c.Rested(2048, 150e-3, 0, 0, 4), low)
	if got := c.Rested(2048, 7e-3, 0, 0, 1); got < 0.91*low || got > 0.99*low {
		t.Errorf("shortly after that: %g s, want between %g and %g", got, 0.9*low, low)
	}
	near("after a long rest", c.Rested(2048, 0, 1, RestCopies, 1), 0.9*low)
	dense, copies := c.Rested(2048, 0, 4e-3, RestDense, 4), c.Rested(2048, 0, 4e-3, RestCopies, 4)
	if !(0.9*low < copies && copies < dense && dense < low) {
		t.Errorf("after 4 ms of copies %g s, of dense decode %g", copies, dense)
	}
	p.Clock = Clock{}
	near("without figures", NewClockProbes(p, m, 32).Rested(2048, 0, 0, 0, 2), low)
}

// A prompt's first chunk is nearly at the full clock where the card is slow to see it; late
// ones take what they take without pause; a clock that is always full changes nothing.
func TestChunksOfAPrompt(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "llama2-7b")
	withClock(p)
	attention := func(prefix int) float64 {
		return Seconds(p.Costs(m).PrefillAttention,
			sim.Work{Prefill: []sim.Span{sim.Span{Query: 2048, Prefix: prefix}}})
	}
	full := 0.9*Seconds(p.Costs(m).GEMM, sim.Work{Tokens: 2048}) + attention(0)
	c := NewClockProbes(p, m, 32)
	p.Clock.PowerFilter = us(10_000_000)
	if got := c.Prompt(2048, 5, 1); math.Abs(got/full-1) > 1e-3 {
		t.Errorf("the first chunk at the full clock: %g s a layer, want %g", got, full)
	}
	withClock(p)
	p.Clock.MemoryBoundPower = count(0.8, "share")
	first, low := c.Prompt(2048, 5, 1), c.Chunk(2048, 0)
	if !(first > full && first < low) {
		t.Errorf("the first chunk takes %g s, want more than %g and less than %g", first, full, low)
	}
	p.Clock.MemoryBoundPower = count(0.99, "share")
	if got := c.Prompt(2048, 5, 1); got <= first {
		t.Errorf("after decodes that draw much the first chunk takes %g s, after such that draw less "+
			"%g", got, first)
	}
	if got, want := c.Prompt(2048, 5, 5), c.Chunk(2048, 8192); math.Abs(got/want-1) > 0.01 {
		t.Errorf("the fifth chunk takes %g s, want nearly %g", got, want)
	}
	p.Clock = Clock{}
	if got, want := NewClockProbes(p, m, 0).Prompt(2048, 5, 7),
		Seconds(p.Costs(m).GEMM, sim.Work{Tokens: 2048})+attention(2048); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("without a clock %g s, want %g", got, want)
	}
}
