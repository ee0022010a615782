package hw

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// The optional figures of transfers add up as transfer.go describes, and
// count for nothing where they are absent.
func TestOptionalTransferFigures(t *testing.T) {
	const blocks, blockBytes, pool = 100, 4096, 1 << 20
	load := func(p *Profile, engine string) float64 {
		s, err := p.LoadSeconds(engine, blocks, blockBytes, pool)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	save := func(p *Profile, engine string) float64 {
		s, err := p.SaveSeconds(engine, blocks, blockBytes, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		name  string
		set   func(p *Profile)
		time  func(p *Profile) float64
		extra float64 // us
	}{
		{"load.memcpy_base", func(p *Profile) { p.Load.MemcpyBase = us(8) },
			func(p *Profile) float64 { return load(p, LoadMemcpy) }, 8},
		{"save.memcpy_base", func(p *Profile) { p.Save.MemcpyBase = us(8) },
			func(p *Profile) float64 { return save(p, SaveMemcpy) }, 8},
	} {
		p := mustProfile(t, "a100-40gb")
		before := c.time(p)
		c.set(p)
		if got := (c.time(p) - before) * 1e6; math.Abs(got-c.extra) > 1e-6 {
			t.Errorf("%s adds %.3f us, want %.3f", c.name, got, c.extra)
		}
	}
}

// A layer adds up the prices of the single models.
func TestPricesAreTheDevices(t *testing.T) {
	for _, name := range CardNames() {
		p, m := mustProfile(t, name), mustModel(t, "llama3-8b")
		span := sim.Span{Query: 700, Prefix: 5000}
		c := newCoster(p, m, &DeviceOptions{})
		got := *c.layer(&sim.Work{Tokens: 704, Decodes: 4, DecodeTokens: 9000, Prefill: []sim.Span{span},
			ScoredBlocks: 3000, Sparse: true})
		dense := *c.layer(&sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 9000})
		pw, _ := c.pointwise.of(4)
		for _, part := range []struct {
			name      string
			got, want float64
		}{
			{"linears", Seconds(p.Costs(m).GEMM, sim.Work{Tokens: 4}) + pw, dense.linears.Seconds()},
			{"prefill attention", Seconds(p.Costs(m).PrefillAttention, sim.Work{Prefill: []sim.Span{span}}),
				got.prefill.Seconds()},
			{"sparse decode", Seconds(p.Costs(m).SparseDecode, sim.Work{DecodeTokens: 9000, Decodes: 4}),
				got.sparse.Seconds()},
			{"dense decode", Seconds(p.Costs(m).DenseDecode, sim.Work{DecodeTokens: 9000, Decodes: 4}),
				dense.dense.Seconds()},
			{"scoring", Seconds(p.Costs(m).Scoring, sim.Work{ScoredBlocks: 3000, Decodes: 4}),
				got.scoring.Seconds()},
		} {
			if math.Abs(part.got-part.want) > 3e-9 {
				t.Errorf("%s, %s: priced alone %g, in a layer %g", name, part.name, part.got, part.want)
			}
		}
		a := newPrefillAttention(p, m, 0)
		if PrefillFLOPs(m, span) != a.spanFLOPs(span) {
			t.Errorf("FLOPs of a chunk: %g and %g", PrefillFLOPs(m, span), a.spanFLOPs(span))
		}
	}
	p := mustProfile(t, "h200")
	if _, err := p.LoadSeconds("rdma", 1, 1, 1); err == nil {
		t.Error("an unknown load engine has a price")
	}
	if _, err := p.SaveSeconds("rdma", 1, 1, 0, 0); err == nil {
		t.Error("an unknown save engine has a price")
	}
}
