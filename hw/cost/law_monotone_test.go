package cost

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// neverFalling is a profile whose linears and grids take no less for more tokens, as measured ones
// may: each row has the shortest time of itself and all later rows, without pause and at the full
// clock, and grids have one gain of the clock for all sizes, because its rows come from other
// kernels.
func neverFalling(p *hw.Profile) *hw.Profile {
	q := *p
	// tokens that are no multiple of 8 take longer than the next that are
	q.Grids = slices.DeleteFunc(slices.Clone(p.Grids),
		func(g hw.Grid) bool { return g.Kernel == hw.GridRagged })
	for i := range q.Grids {
		neverFall(&q.Grids[i])
	}
	q.Linears = slices.Clone(p.Linears)
	for i := len(q.Linears) - 1; i >= 0; i-- {
		for _, r := range q.Linears[i+1:] {
			if a := &q.Linears[i]; r.Shape == a.Shape && r.Tokens > a.Tokens && r.SI() < a.SI() {
				a.Figure = r.Figure
			}
		}
	}
	q.Clock.Gain = slices.Clone(p.Clock.Gain)
	if p.GridOf(hw.GridGEMM, "bf16") != nil {
		q.Clock.Gain = nil
		for i, r := range p.Clock.Gain {
			if i+1 == len(p.Clock.Gain) || p.Clock.Gain[i+1].Shape != r.Shape {
				q.Clock.Gain = append(q.Clock.Gain, r)
			}
		}
	}
	seconds := func(p *hw.Profile, of hw.GainRow) float64 {
		t, _ := tokenCurve(p.Linears, of.Shape).cost(float64(of.Tokens))
		return t
	}
	least := math.Inf(1) // at the full clock
	for i := len(q.Clock.Gain) - 1; i >= 0; i-- {
		r := &q.Clock.Gain[i]
		if i+1 < len(q.Clock.Gain) && q.Clock.Gain[i+1].Shape != r.Shape {
			least = math.Inf(1)
		}
		least = min(least, seconds(p, *r)*(1-r.SI()), seconds(&q, *r))
		r.Value, r.Unit = max(1e-12, 1-least/seconds(&q, *r)), "share"
	}
	return &q
}

// neverFall lowers each time of a grid to the shortest for at least as many tokens.
func neverFall(g *hw.Grid) {
	step := len(g.Times) // from a time to that of the axis's next value
	g.Times = slices.Clone(g.Times)
	for _, a := range g.Axes {
		if step /= len(a.At); a.Size != "tokens" {
			continue
		}
		for i := len(g.Times) - 1; i >= 0; i-- {
			if last := i/step%len(a.At) == len(a.At)-1; !last {
				g.Times[i] = min(g.Times[i], g.Times[i+step])
			}
		}
	}
}

// Linears are made monotone first: measured ones may take less for more tokens.
func TestLaw11MonotoneWork(t *testing.T) {
	allPairs(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		c := newCoster(neverFalling(p), m, &DeviceOptions{})
		w := drawWork(t)
		more := w
		more.Prefill = append([]sim.Span(nil), w.Prefill...)
		more.Tokens += rapid.IntRange(0, 4096).Draw(t, "more tokens")
		more.DecodeTokens += logInt(t, 1<<24, "more kv") - 1
		more.ScoredBlocks += logInt(t, 1<<18, "more blocks") - 1
		for i := range more.Prefill {
			more.Prefill[i].Query += rapid.IntRange(0, 4096).Draw(t, "more query")
			more.Prefill[i].Prefix += rapid.IntRange(0, 65536).Draw(t, "more prefix")
		}
		a, b := *c.layer(&w), *c.layer(&more)
		if b.linears < a.linears || b.prefill < a.prefill || b.dense < a.dense || b.sparse < a.sparse ||
			b.scoring < a.scoring {
			t.Fatalf("%s, %s: %+v costs %+v, but %+v costs %+v", p.Name, m.Name, w, a, more, b)
		}
	})
}

func TestLaw11MonotoneTransfers(t *testing.T) {
	allPairs(t, func(t *rapid.T, p *hw.Profile, _ *llm.Model) {
		n, b := logInt(t, 1e7, "blocks"), logInt(t, 1<<20, "block bytes")
		n2, b2 := n+logInt(t, 1e6, "more blocks")-1, b+logInt(t, 1<<16, "more bytes")-1
		pool := logInt(t, 1<<40, "pool")
		for _, e := range LoadEngines() {
			l, err := newLoader(p, e)
			if err != nil {
				t.Fatal(err)
			}
			l.over(pool)
			a, c := l.seconds(n, b), l.seconds(n2, b2)
			if c < a {
				t.Fatalf("%s: %d x %d takes %g, %d x %d takes %g", e, n, b, a, n2, b2, c)
			}
		}
		threads := rapid.IntRange(1, 64).Draw(t, "threads")
		for _, e := range SaveEngines() {
			s, err := newSaver(p, e, threads)
			if err != nil {
				t.Fatal(err)
			}
			faster, err := newSaver(p, e, threads+1)
			if err != nil {
				t.Fatal(err)
			}
			if s.seconds(n2, b2) < s.seconds(n, b) || faster.seconds(n, b) > s.seconds(n, b)*(1+1e-9) {
				t.Fatalf("%s: cost falls with bytes or rises with threads", e)
			}
		}
	})
}
