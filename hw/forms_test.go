package hw

import (
	"math"
	"strings"
	"testing"
)

func us(v float64) Figure { return Figure{v, "us", Measured, "test"} }

func ns(v float64) Figure { return Figure{v, "ns", Measured, "test"} }

func count(v float64, unit string) Figure { return Figure{v, unit, Measured, "test"} }

// plainH200 is the H200 without optional figures of streams.
func plainH200(t *testing.T) *Profile {
	p := mustProfile(t, "h200")
	for _, s := range []*Stream{&p.DenseDecode, &p.SparseDecode, &p.Scoring} {
		*s = Stream{Launch: us(10), Rate: Figure{4000, "GB/s", Measured, "test"}}
	}
	return p
}

// The optional figures of decode and scoring add what attention.go says.
func TestOptionalStreamFigures(t *testing.T) {
	llama3, lwm := mustModel(t, "llama3-8b"), mustModel(t, "lwm-7b") // 8 KV heads of 4 query heads, 32 of one
	dense := func(m *Model, requests, context int) func(p *Profile) float64 {
		return func(p *Profile) float64 { return p.DenseDecodeSeconds(m, int64(requests*context), requests) }
	}
	scoring := func(m *Model, requests, blocks int) func(p *Profile) float64 {
		return func(p *Profile) float64 { return p.ScoringSeconds(m, int64(requests*blocks), requests) }
	}
	merge := func(p *Profile) { p.DenseDecode.Merge, p.DenseDecode.CTAs = ns(100), count(264, "CTAs") }
	room := func(p *Profile) {
		p.Scoring.Room, p.Scoring.Crowd, p.Scoring.PerQuery, p.Scoring.PerHead = count(132, "lists"), us(3), ns(800), ns(10)
	}
	long := func(p *Profile) {
		p.Scoring.AtOnce, p.Scoring.Long, p.Scoring.PerLong = count(128, "blocks"), us(2), ns(4)
	}
	for _, c := range []struct {
		name  string
		set   func(p *Profile)
		time  func(p *Profile) float64
		extra float64 // us
	}{
		{"8 lists of 1024 tokens: a CTA takes 128", merge, dense(llama3, 1, 1024), 4 * 8 * 0.1},
		{"8 lists of 65536: 33 splits fill the card", merge, dense(llama3, 1, 65536), 4 * 33 * 0.1},
		{"32 lists of one query head: 8 splits", merge, dense(lwm, 1, 65536), 8 * 0.1},
		{"2048 lists: one CTA each", merge, dense(lwm, 64, 4096), 0.1},
		{"room for 128 lists", room, scoring(lwm, 4, 128), 0},
		{"256 lists, 124 beyond room", room, scoring(lwm, 8, 128), 3 + 124*0.01},
		{"the same of 4 query heads", room, scoring(llama3, 32, 128), 3 + 3*0.8 + 124*0.01},
		{"short lists", long, scoring(lwm, 1, 128), 0},
		{"long lists", long, scoring(lwm, 1, 129), 2 + 32*0.004},
	} {
		p := plainH200(t)
		before := c.time(p)
		c.set(p)
		if got := (c.time(p) - before) * 1e6; math.Abs(got-c.extra) > 1e-6 {
			t.Errorf("%s: adds %.3f us, want %.3f", c.name, got, c.extra)
		}
	}
}

// PSA waits for its rounds where lists are few, for bytes where they are many,
// and never beats HBM.
func TestPSADecode(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	p.PSADecode = PSADecode{Launch: us(7), PerHead: ns(8), Round: us(2), PerBlock: ns(100), Relaunch: us(1.5), Rate: Figure{4000, "GB/s", Measured, "test"}}
	for _, c := range []struct {
		name                              string
		requests, blocks, micro, launches int
		want                              float64 // us
	}{
		{"4 rounds of 16", 1, 64, 16, 1, 7 + 32*0.008 + 4*2 + 6.4},
		{"the same in 4 launches", 1, 64, 16, 4, 7 + 3*1.5 + 4*32*0.008 + 4*2 + 6.4},
		{"the same in rounds of 64", 1, 64, 64, 1, 7 + 32*0.008 + 2 + 6.4},
		{"a round begun", 1, 65, 16, 1, 7 + 32*0.008 + 5*2 + 6.5},
		{"bytes", 64, 128, 16, 1, 7 + 2048*0.008 + 64*128*32*16384/4e6},
	} {
		got, known := p.PSADecodeSeconds(m, c.requests, c.blocks, 32, c.micro, c.launches)
		if !known || math.Abs(got*1e6-c.want) > 1e-6 {
			t.Errorf("%s: %.3f us, want %.3f", c.name, got*1e6, c.want)
		}
	}
	p.PSADecode.Few = PSAFew{Room: Figure{100, "lists", Measured, "test"}, Wave: Figure{64, "blocks", Measured, "test"}, Launch: us(8), Query: us(1), NextWave: us(1.5),
		WaveQuery: ns(500), Rate: Figure{4096, "GB/s", Measured, "test"}}
	for _, c := range []struct {
		name                       string
		model                      string
		requests, blocks, launches int
		want                       float64 // us
	}{
		{"one wave", "lwm-7b", 1, 64, 1, 8 + 1 + 8.192},
		{"a second one begun", "lwm-7b", 1, 65, 1, 8 + 1 + 2 + 8.32},
		{"in two launches", "lwm-7b", 1, 64, 2, 2*(8+1) + 8.192},
		{"clusters half as large", "lwm-7b", 2, 64, 1, 8 + 1 + 2 + 16.384},
		{"4 query heads", "llama3-8b", 1, 128, 1, 8 + 4 + 1.5 + 4*0.5 + 4.096},
		{"more lists than room", "lwm-7b", 4, 128, 1, 7 + 128*0.008 + 4*128*32*16384/4e6},
	} {
		if got, _ := p.PSADecodeSeconds(mustModel(t, c.model), c.requests, c.blocks, 32, 16, c.launches); math.Abs(got*1e6-c.want) > 1e-6 {
			t.Errorf("few lists, %s: %.3f us, want %.3f", c.name, got*1e6, c.want)
		}
	}
	p.PSADecode.Rate.Value = 1e6
	if got, _ := p.PSADecodeSeconds(m, 64, 128, 32, 16, 1); got < 64*128*32*16384/p.GPU.HBMBandwidth.SI() {
		t.Errorf("%g s beats HBM", got)
	}
	if _, known := mustProfile(t, "a100-40gb").PSADecodeSeconds(m, 1, 64, 32, 16, 1); known {
		t.Error("the A100 has no figures of PSA")
	}
}

// Measured head rows replace the derivation, scaled by hidden x vocab; the
// embedding adds its launch.
func TestHeadRows(t *testing.T) {
	p, m := mustProfile(t, "a100-80gb"), mustModel(t, "lwm-7b")
	p.Shapes[0].Vocab = 16000
	p.Head = []TokenRow{{"llama2-7b", 1, us(600)}, {"llama2-7b", 11, us(700)}}
	if got := p.HeadSeconds(m, 0, 6) * 1e6; math.Abs(got-1300) > 1e-6 {
		t.Errorf("6 rows of twice the vocabulary: %.3f us, want 1300", got)
	}
	p.Embedding = Embedding{us(5), Figure{1000, "GB/s", Measured, "test"}}
	if got, want := p.HeadSeconds(m, 100, 0)*1e6, 5+100*2*4096*2/1e6; math.Abs(got-want) > 1e-6 {
		t.Errorf("100 tokens: %.3f us, want %.3f", got, want)
	}
	if p.HeadSeconds(m, 0, 0) != 0 {
		t.Error("nothing costs something")
	}
}

// Figures that mean nothing alone, and rows out of order, are refused by name.
func TestFormsAreChecked(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(p *Profile)
	}{
		{"dense_decode.merge: want it together with ctas", func(p *Profile) { p.DenseDecode.CTAs = Figure{} }},
		{"dense_decode.tail: means nothing without dense_decode.ctas", func(p *Profile) { p.DenseDecode.CTAs, p.DenseDecode.Merge = Figure{}, Figure{} }},
		{"psa_decode.alone: means nothing without psa_decode.rate", func(p *Profile) { p.PSADecode = PSADecode{Alone: ns(400)} }},
		{"psa_decode.few.full: means nothing without psa_decode.few.room", func(p *Profile) { p.PSADecode.Few = PSAFew{Full: count(62, "lists")} }},
		{"scoring.long: want it together with at_once", func(p *Profile) { p.Scoring.AtOnce = Figure{} }},
		{"psa_decode.rate: want it together with round", func(p *Profile) { p.PSADecode.Round = Figure{} }},
		{"psa_decode.few.room: want it together with wave", func(p *Profile) { p.PSADecode.Few.Wave = Figure{} }},
		{"embedding.rate: want it together with launch", func(p *Profile) { p.Embedding.Launch = Figure{} }},
		{"load.memcpy_early: want it together with memcpy_first", func(p *Profile) { p.Load.MemcpyEarly, p.Load.MemcpyFirst = us(1), Figure{} }},
		{"save.memcpy_start: want it together with memcpy_whole", func(p *Profile) { p.Save.MemcpyStart, p.Save.MemcpyWhole = us(1), Figure{} }},
		{"load.batched_sizes[1].block_bytes: want sizes that rise", func(p *Profile) { p.Load.BatchedSizes[1].BlockBytes = 1 }},
		{"head[0].shape: want a shape with its vocab", func(p *Profile) { p.Shapes[0].Vocab = 0 }},
	} {
		p := mustProfile(t, "h200")
		c.change(p)
		path, err := p.validate()
		if err == nil || !strings.HasPrefix(path+": "+err.Error(), c.want) {
			t.Errorf("got %s: %v, want %s", path, err, c.want)
		}
	}
}

// A layer's round trip grows with its lists: 4 bytes a selected block and KV
// head.
func TestRoundTrip(t *testing.T) {
	p, m := mustProfile(t, "a100-40gb"), mustModel(t, "lwm-7b")
	sync := p.Host.LayerSync.SI()
	r := newRoundTrip(p, m)
	if r.seconds(1e6) != sync {
		t.Error("without a rate the lists cost something")
	}
	p.Host.LayerRate = Figure{2, "GB/s", Measured, "test"}
	r = newRoundTrip(p, m)
	if got, want := r.seconds(8*2048), sync+8*64*32*4/2e9; math.Abs(got-want) > 1e-12 {
		t.Errorf("8 requests of 2048 tokens: %g s, want %g", got, want)
	}
	if p.LayerSyncSeconds(8, 65536) != r.seconds(8*2048) {
		t.Error("the price is not the device's")
	}
}
