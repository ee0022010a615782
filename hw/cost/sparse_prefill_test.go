package cost

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// drawHead draws a sparse pattern whose sizes go from one line to more than any row.
func drawHead(t *rapid.T) pattern.Head {
	return pattern.Head{
		Kind: rapid.SampledFrom(pattern.Kinds()).Draw(t, "pattern"),
		A:    int(logInt(t, 1<<21, "first size")), B: int(logInt(t, 1<<21, "second size")),
	}
}

// drawPatterns divides a layer's query heads among a few patterns.
func drawPatterns(t *rapid.T, m *llm.Model) (groups []pattern.Group) {
	for left := m.QHeads; left > 0; {
		n := rapid.IntRange(1, left).Draw(t, "heads")
		groups, left = append(groups, pattern.Group{Head: drawHead(t), Heads: float64(n)}), left-n
	}
	return groups
}

func drawSpan(t *rapid.T) sim.Span {
	return sim.Span{Query: int(logInt(t, 1<<20, "query")), Prefix: int(logInt(t, 1<<20, "prefix")) - 1}
}

// The least seconds of sparse prefill: a row keeps what naive counting of its keys says, and the
// keys of the last row are read.
func TestLaw10PhysicsSparsePrefill(t *testing.T) {
	allPairs(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		c := newCoster(p, m, &DeviceOptions{})
		s := drawSpan(t)
		w := sim.Work{Tokens: s.Query, Prefill: []sim.Span{s}, Patterns: drawPatterns(t, m)}
		var flops, bytes, index float64
		for _, g := range w.Patterns {
			flops += 4 * float64(m.HeadDim) * g.Heads * g.Pairs(s.Query, s.Prefix)
			bytes += 4 * float64(m.HeadDim*m.KVHeads) * g.Heads / float64(m.QHeads) *
				g.Kept(float64(s.Query+s.Prefix))
			if g.Kind.Indexed() { // K is read once for the query heads of a KV head, at the least
				keys := 2 * float64(m.HeadDim) * float64(s.Query+s.Prefix)
				index += g.Heads * (g.IndexBytes(s.Query, s.Prefix, m.HeadDim) -
					keys*(1-float64(m.KVHeads)/float64(m.QHeads)))
			}
		}
		got := c.layer(&w)
		if least := math.Max(flops/p.GPU.PeakFP16.SI(),
			bytes/p.GPU.HBMBandwidth.SI()); got.prefill.Seconds() < least*(1-1e-9) {
			t.Fatalf("%s, %s: %+v takes %v, physics allow %gs", p.Name, m.Name, w, got.prefill, least)
		}
		if least := index / p.GPU.HBMBandwidth.SI(); got.index.Seconds() < least*(1-1e-9) {
			t.Fatalf("%s, %s: the index of %+v takes %v, physics allow %gs", p.Name, m.Name, w,
				got.index, least)
		}
	})
}

// The floor holds for any figures of a profile.
func TestLaw10PhysicsAbsurdSparsePrefill(t *testing.T) {
	p, m := mustProfile(t, "a100-80gb"), mustModel(t, "llama3-8b")
	for i := range p.SparsePrefill {
		p.SparsePrefill[i].Efficiency.Value = 1e6
		if p.SparsePrefill[i].Index.Set() {
			p.SparsePrefill[i].Index.Value = 1e6
		}
	}
	c := newCoster(p, m, &DeviceOptions{})
	h, _ := pattern.Published(pattern.VerticalSlash)
	w := sim.Work{Tokens: 100_000, Prefill: []sim.Span{{Query: 100_000}},
		Patterns: []pattern.Group{{Head: h, Heads: 32}}}
	got := c.layer(&w)
	flops := 4 * 128 * 32 * h.Pairs(100_000, 0)
	if least := flops / p.GPU.PeakFP16.SI(); got.prefill.Seconds() < least {
		t.Errorf("takes %v, physics allow %gs", got.prefill, least)
	}
	if least := 32 * h.IndexBytes(100_000, 0, 128) /
		p.GPU.HBMBandwidth.SI(); got.index.Seconds() < least {
		t.Errorf("the index takes %v, physics allow %gs", got.index, least)
	}
}

func groupOf(h pattern.Head, m *llm.Model) []pattern.Group {
	return []pattern.Group{{Head: h, Heads: float64(m.QHeads)}}
}

func TestLaw11MonotoneSparsePrefill(t *testing.T) {
	allPairs(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		c := newCoster(p, m, &DeviceOptions{})
		uncounted := newSparsePrefill(p, m, c.prefill) // its columns cost what blocks do
		lines := uncounted.rows[pattern.VerticalSlash]
		lines.columns = max(lines.columns, lines.efficiency)
		uncounted.rows[pattern.VerticalSlash] = lines
		price := func(h pattern.Head, s sim.Span) (attention, index float64) {
			cost := *c.layer(&sim.Work{Tokens: s.Query, Prefill: []sim.Span{s}, Patterns: groupOf(h, m)})
			return cost.prefill.Seconds(), cost.index.Seconds()
		}
		h, s := drawHead(t), drawSpan(t)
		more, longer := h, s
		more.A += rapid.IntRange(0, 4096).Draw(t, "more of the first")
		more.B += rapid.IntRange(0, 4096).Draw(t, "more of the second")
		longer.Query += rapid.IntRange(0, 4096).Draw(t, "more query")
		longer.Prefix += rapid.IntRange(0, 65536).Draw(t, "more prefix")
		at, in := price(h, s)
		least := at
		if h.Kind == pattern.VerticalSlash { // columns that a slash line covers are cheaper in its blocks
			least, _ = uncounted.of(groupOf(h, m), []sim.Span{s})
		}
		// An index shrinks where more rows keep all that they have.
		if a, i := price(more, s); a < least*(1-1e-9) {
			t.Fatalf("%s, %s: %s costs %g + %g, %s %g + %g", p.Name, m.Name, h, at, in, more, a, i)
		}
		if a, i := price(h, longer); a < at*(1-1e-9) || i < in*(1-1e-9) {
			t.Fatalf("%s, %s: %s costs %g + %g on %+v, %g + %g on %+v", p.Name, m.Name, h, at, in, s,
				a, i, longer)
		}
	})
}

// Chunks compute what the whole prompt computes, and build an index each.
func TestChunksOfSparsePrefill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHead(t)
		tokens, chunk := int(logInt(t, 1<<20, "tokens")), int(logInt(t, 1<<17, "chunk"))
		if tokens/chunk > 10_000 {
			t.Skip("many chunks")
		}
		var pairs, index float64
		for from := 0; from < tokens; from += chunk {
			n := min(chunk, tokens-from)
			pairs += h.Pairs(n, from)
			index += h.IndexBytes(n, from, 128)
		}
		if whole := h.Pairs(tokens, 0); math.Abs(pairs-whole) > 1e-9*whole {
			t.Fatalf("%s: chunks of %d of %d tokens have %g pairs, the whole prompt %g", h, chunk, tokens,
				pairs, whole)
		}
		if whole := h.IndexBytes(tokens, 0, 128); index < whole*(1-1e-9) {
			t.Fatalf("%s: the indices of chunks of %d of %d tokens move %g B, that of the whole %g", h,
				chunk, tokens, index, whole)
		}
	})
}

// A card without rows is priced by others' shares, and says so.
func TestSparsePrefillNotMeasured(t *testing.T) {
	h, _ := pattern.Published(pattern.AShape)
	w := sim.Work{Tokens: 4096, Prefill: []sim.Span{{Query: 4096}},
		Patterns: []pattern.Group{{Head: h, Heads: 32}}}
	price := func(p *hw.Profile) (s metrics.Timing, warned bool) {
		d, err := NewDevice(p, mustModel(t, "llama3-8b"), DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s = runStep(t, d, &sim.Step{}, 1, &w, 0, 0)
		notes := strings.Join(warn.Texts(d.ExtrapolationNotes(s.Extrapolated)), "\n")
		return s, strings.Contains(notes, "sparse prefill: no kernels measured on "+p.Name)
	}
	for _, card := range []string{"a100-80gb", "h200"} {
		p := *mustProfile(t, card)
		measured, warned := price(&p)
		if warned {
			t.Errorf("%s has rows and is said to have none", card)
		}
		p.SparsePrefill = nil
		if _, warned := price(&p); !warned {
			t.Errorf("%s without rows: no warning", card)
		}
		p.SparsePrefill = hw.PublishedRows()
		shares, _ := price(&p)
		if same := shares.Elapsed == measured.Elapsed; same != (card == "a100-80gb") {
			t.Errorf("%s: %v by its rows, %v by those that are published", card, measured.Elapsed,
				shares.Elapsed)
		}
		p.SparsePrefill = nil
		if without, _ := price(&p); without.Elapsed != shares.Elapsed {
			t.Errorf("%s: %v without rows, %v by those that are published", card, without.Elapsed,
				shares.Elapsed)
		}
	}
}

func TestSparseRowsErrors(t *testing.T) {
	type rows = []hw.SparseRow
	for want, change := range map[string]func(rows) rows{
		`sparse_prefill[0].pattern`: func(r rows) rows {
			r[0].Pattern = "b-shape"
			return r
		},
		`a second row of a-shape`: func(r rows) rows { r[1] = r[0]; return r },
		`sparse_prefill[1].index`: func(r rows) rows { r[1].Index = hw.Figure{}; return r },
		`sparse_prefill[0].columns`: func(r rows) rows {
			r[0].Columns = r[0].Efficiency
			return r
		},
		`sparse_prefill[0].index`: func(r rows) rows { r[0].Index = r[1].Index; return r },
	} {
		p := *mustProfile(t, "a100-80gb")
		p.SparsePrefill = change(append([]hw.SparseRow(nil), p.SparsePrefill...))
		path, err := wrongKey(&p)
		if err == nil || !strings.Contains(path+": "+err.Error(), want) {
			t.Errorf("want %q, got %s: %v", want, path, err)
		}
	}
}
