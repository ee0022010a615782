package hw

import (
	"math"
	"testing"

	"sparseserve/sim"
)

// The optional figures of transfers add up as load.go and save.go say, and
// count for nothing where they are absent.
func TestOptionalTransferFigures(t *testing.T) {
	const blocks, blockBytes, pool = 100, 4096, 1 << 20
	kib := func(v float64) Figure { return Figure{v, "KiB", Measured, "test"} }
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
		{"load.memcpy_base", func(p *Profile) { p.Load.MemcpyBase = us(8) }, func(p *Profile) float64 { return load(p, LoadMemcpy) }, 8},
		{"load.flash_block", func(p *Profile) { p.Load.FlashBlock = us(0.5) }, func(p *Profile) float64 { return load(p, LoadFlash) }, 0.5 * blocks},
		{"save.memcpy_base", func(p *Profile) { p.Save.MemcpyBase = us(8) }, func(p *Profile) float64 { return save(p, SaveMemcpy) }, 8},
		{"save.flash_wake", func(p *Profile) { p.Save.FlashWake = us(0.5) }, func(p *Profile) float64 { return save(p, SaveFlash) }, 0.5 * 8},
		{"save.flash_block", func(p *Profile) { p.Save.FlashBlock = us(0.5) }, func(p *Profile) float64 { return save(p, SaveFlash) }, 0.5 * blocks},
		// 409600 bytes, all in one chunk, over the faster of a link of 25 GB/s and 8 threads' 31.4 GB/s
		{"save.flash_chunk", func(p *Profile) { p.Save.FlashChunk = Figure{1, "MiB", Measured, "test"} }, func(p *Profile) float64 { return save(p, SaveFlash) }, 409600 / 31.4e3},
		{"load.memcpy_early", func(p *Profile) { p.Load.MemcpyEarly, p.Load.MemcpyFirst = us(2), count(300, "blocks") }, func(p *Profile) float64 { return load(p, LoadMemcpy) }, 2 * blocks * 300 / 400},
		{"load.memcpy_start", func(p *Profile) { p.Load.MemcpyStart, p.Load.MemcpyWhole = us(3), kib(16) }, func(p *Profile) float64 { return load(p, LoadMemcpy) }, 3 * 4 / 16.},
		{"save.memcpy_long", func(p *Profile) { p.Save.MemcpyLong, p.Save.MemcpyHalf = us(2), count(300, "blocks") }, func(p *Profile) float64 { return save(p, SaveMemcpy) }, 2 * blocks * 100 / 400},
		{"save.memcpy_start", func(p *Profile) { p.Save.MemcpyStart, p.Save.MemcpyWhole = us(3), kib(2) }, func(p *Profile) float64 { return save(p, SaveMemcpy) }, 3},
		// A block of 2.1 us becomes one of 3, between rows of 2 and 4 us.
		{"load.batched_sizes", func(p *Profile) { p.Load.BatchedSizes = []SizeRow{{2048, us(2)}, {8192, us(4)}} }, func(p *Profile) float64 { return load(p, LoadBatched) }, 0.9 * blocks},
		{"load.batched_early", func(p *Profile) { p.Load.BatchedEarly, p.Load.BatchedFirst = count(0.5, "share"), count(40, "blocks") },
			func(p *Profile) float64 { return load(p, LoadBatched) }, 0.5 * 40 * 2.1},
		{"save.flash_join", func(p *Profile) { p.Save.FlashJoin = us(5) }, func(p *Profile) float64 { return save(p, SaveFlash) }, 5},
		// 204800 of 409600 bytes at 10 instead of 25 GB/s
		{"save.flash_near", func(p *Profile) {
			p.Save.FlashNear, p.Save.Scatter[1].Long = kib(200), Figure{10, "GB/s", Measured, "test"}
		},
			func(p *Profile) float64 { return save(p, SaveFlash) }, 204800 * (1/10e3 - 1/25e3)},
		{"save.gpu_block", func(p *Profile) { p.Save.GPUBlock = us(0.5) }, func(p *Profile) float64 { return save(p, SaveGPU) }, 0.5 * blocks},
	} {
		p := mustProfile(t, "a100-40gb")
		before := c.time(p)
		c.set(p)
		if got := (c.time(p) - before) * 1e6; math.Abs(got-c.extra) > 1e-6 {
			t.Errorf("%s adds %.3f us, want %.3f", c.name, got, c.extra)
		}
	}
}

// Prices of single models are those that a layer adds up.
func TestPricesAreTheDevices(t *testing.T) {
	for _, name := range CardNames() {
		p, m := mustProfile(t, name), mustModel(t, "llama3-8b")
		p.Scoring.PerHead, p.Scoring.Room = Figure{2, "ns", Measured, "test"}, Figure{} // no list has room: each is paid
		span := sim.Span{Query: 700, Prefix: 5000}
		c := newCoster(p, m, &DeviceOptions{})
		got := *c.layer(&sim.Work{Tokens: 704, Decodes: 4, DecodeTokens: 9000, Prefill: []sim.Span{span}, ScoredBlocks: 3000, Sparse: true})
		dense := *c.layer(&sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 9000})
		pw, _ := c.pointwise.seconds(4)
		for _, part := range []struct {
			name      string
			got, want float64
		}{
			{"linears", p.LinearsSeconds(m, 4) + pw, dense.linears.Seconds()},
			{"prefill attention", p.PrefillSeconds(m, span), got.prefill.Seconds()},
			{"sparse decode", p.SparseDecodeSeconds(m, 9000, 4), got.sparse.Seconds()},
			{"dense decode", p.DenseDecodeSeconds(m, 9000, 4), dense.dense.Seconds()},
			{"scoring", p.ScoringSeconds(m, 3000, 4), got.scoring.Seconds()},
		} {
			if math.Abs(part.got-part.want) > 3e-9 {
				t.Errorf("%s, %s: priced alone %g, in a layer %g", name, part.name, part.got, part.want)
			}
		}
		alone := *p
		alone.Scoring.PerHead = Figure{}
		if extra := p.ScoringSeconds(m, 3e6, 4) - alone.ScoringSeconds(m, 3e6, 4); math.Abs(extra-4*8*2e-9) > 1e-12 {
			t.Errorf("%s: choosing for 4 requests of 8 KV heads adds %g", name, extra)
		}
		a := newPrefillAttention(p, m)
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
