package hw

import (
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
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

// The optional figures of decode and scoring add what memory_bound.go describes.
func TestOptionalStreamFigures(t *testing.T) {
	// 8 KV heads of 4 query heads, 32 of one
	llama3, lwm := mustModel(t, "llama3-8b"), mustModel(t, "lwm-7b")
	dense := func(m *Model, requests, context int) func(p *Profile) float64 {
		return func(p *Profile) float64 {
			return Seconds(p.Costs(m).DenseDecode,
				sim.Work{DecodeTokens: int64(requests * context), Decodes: requests})
		}
	}
	merge := func(p *Profile) { p.DenseDecode.Merge = ns(100) }
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
	} {
		p := plainH200(t)
		before := c.time(p)
		c.set(p)
		if got := (c.time(p) - before) * 1e6; math.Abs(got-c.extra) > 1e-6 {
			t.Errorf("%s: adds %.3f us, want %.3f", c.name, got, c.extra)
		}
	}
}

// PSA waits for its rounds where lists are scarce, for bytes where they are many, and never beats
// HBM.
func TestPSADecode(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	p.GPU.SMs.Value = 1
	p.PSADecode = PSADecode{Launch: us(7), Round: us(4), Relaunch: us(1.5),
		Rate: Figure{4096, "GB/s", Measured, "test"}}
	for _, c := range []struct {
		name                              string
		requests, blocks, micro, launches int
		want                              float64 // us
	}{
		{"4 rounds of 16", 1, 64, 16, 1, 7 + 4*4},
		{"the same in 4 launches", 1, 64, 16, 4, 7 + 3*1.5 + 4*4},
		{"a round of 64, by bytes", 1, 64, 64, 1, 7 + 8.192},
		{"a round begun", 1, 65, 16, 1, 7 + 5*4},
		{"bytes", 64, 128, 16, 1, 7 + 64*128*32*16384/4.096e6},
	} {
		got, known := p.PSASeconds(m, c.requests, equalRounds(c.requests, c.blocks, c.micro), c.launches)
		if !known || math.Abs(got*1e6-c.want) > 1e-6 {
			t.Errorf("%s: %.3f us, want %.3f", c.name, got*1e6, c.want)
		}
	}
	// Of half as many lists as SMs, a cluster shares each.
	p.GPU.SMs.Value = 64
	if got, _ := p.PSASeconds(m, 1, equalRounds(1, 64, 16), 1); math.Abs(
		got*1e6-(7+4*2.048)) > 1e-6 {
		t.Errorf("few lists: %.3f us, want %.3f", got*1e6, 7+4*2.048)
	}
	// Lists that have ended attend to nothing and delay no other list.
	const list = 16 * 32 * 512 // bytes of a round
	even, _ := p.PSASeconds(m, 4, []float64{128 * list, 128 * list}, 1)
	some, _ := p.PSASeconds(m, 4, []float64{128 * list, list}, 1)
	if want := (even - some) * 1e6; math.Abs(want-(128*16*32*512./4.096e6-4)) > 1e-6 {
		t.Errorf("a round of one list is %.3f us shorter than one of all", want)
	}
	p.PSADecode.Rate.Value = 1e6
	if got, _ := p.PSASeconds(m, 64, equalRounds(64, 128, 16),
		1); got < 64*128*32*16384/p.GPU.HBMBandwidth.SI() {
		t.Errorf("%g s beats HBM", got)
	}
	if _, known := mustProfile(t, "a100-40gb").PSASeconds(m, 1, equalRounds(1, 64, 16), 1); known {
		t.Error("the A100 has no figures of PSA")
	}
}

// Figures that mean nothing by themselves, and rows out of order, are refused by name.
func TestFormsAreChecked(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(p *Profile)
	}{
		{"psa_decode.rate: want it together with round",
			func(p *Profile) { p.PSADecode.Round = Figure{} }},
		{"load.layer_delay: want it and load.contention",
			func(p *Profile) { p.Load.LayerDelay = Figure{} }},
	} {
		p := mustProfile(t, "h200")
		c.change(p)
		path, err := wrongKey(p)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %s: %v, want %s", path, err, c.want)
		}
	}
}

// A layer's round trip grows with its lists: 4 bytes a selected block and KV head.
func TestRoundTrip(t *testing.T) {
	p, m := mustProfile(t, "a100-40gb"), mustModel(t, "lwm-7b")
	sync := p.Host.LayerSync.SI()
	of := func(bytes float64) float64 {
		trip := newRoundTrip(p)
		return trip.of(bytes)
	}
	if of(1e6) != sync {
		t.Error("without a rate the lists cost something")
	}
	p.Host.LayerRate = Figure{2, "GB/s", Measured, "test"}
	if got, want := of(ListBytes(m, 8*2048)), sync+8*64*32*4/2e9; math.Abs(got-want) > 1e-12 {
		t.Errorf("8 requests of 2048 tokens: %g s, want %g", got, want)
	}
}

// equalRounds are the bytes of each round of a microbatch, of blocks of 32 tokens of 16 KiB.
func equalRounds(requests, blocks, microbatch int) []float64 {
	n := (blocks + microbatch - 1) / microbatch
	rounds := make([]float64, n)
	for i := range rounds {
		rounds[i] = float64(requests*blocks*32*16384) / float64(n)
	}
	return rounds
}
