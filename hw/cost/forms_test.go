package cost

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
	"github.com/sparseserve/sparseserve/sim"
)

func us(v float64) hw.Figure { return count(v, "us") }

func ns(v float64) hw.Figure { return count(v, "ns") }

func count(v float64, unit string) hw.Figure {
	return hw.Figure{Value: v, Unit: unit, From: hw.Measured, Source: "test"}
}

// plainH200 is the H200 without optional figures of streams.
func plainH200(t *testing.T) *hw.Profile {
	p := mustProfile(t, "h200")
	for _, s := range []*hw.Stream{&p.DenseDecode, &p.SparseDecode, &p.Scoring} {
		*s = hw.Stream{Launch: us(10), Rate: count(4000, "GB/s")}
	}
	return p
}

// The optional figures of decode and scoring add what memory_bound.go describes.
func TestOptionalStreamFigures(t *testing.T) {
	// 8 KV heads of 4 query heads, 32 of one
	llama3, lwm := mustModel(t, "llama3-8b"), mustModel(t, "lwm-7b")
	dense := func(m *llm.Model, requests, context int) func(p *hw.Profile) float64 {
		return func(p *hw.Profile) float64 {
			return Seconds(Of(p, m).DenseDecode,
				sim.Work{DecodeTokens: int64(requests * context), Decodes: requests})
		}
	}
	merge := func(p *hw.Profile) { p.DenseDecode.Merge = ns(100) }
	for _, c := range []struct {
		name  string
		set   func(p *hw.Profile)
		time  func(p *hw.Profile) float64
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

// Figures that mean nothing by themselves, and rows out of order, are refused by name.
func TestFormsAreChecked(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(p *hw.Profile)
	}{
		{"clock.gemm_steady_ratio: want it together with settling",
			func(p *hw.Profile) { p.Clock.Settling = hw.Figure{} }},
		{"paged_prefill.copy: means nothing without paged_prefill.rows",
			func(p *hw.Profile) { p.Paged.Rows = hw.Figure{} }},
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
	p.Host.LayerRate = count(2, "GB/s")
	if got, want := of(ListBytes(m, 8*2048)), sync+8*64*32*4/2e9; math.Abs(got-want) > 1e-12 {
		t.Errorf("8 requests of 2048 tokens: %g s, want %g", got, want)
	}
}

// wrongKey is the key that a profile's validation names.
func wrongKey(p *hw.Profile) (key string, err error) {
	err = p.Validate()
	if at := new(tomlfile.KeyError); errors.As(err, &at) {
		key = at.Path
	}
	return key, err
}
