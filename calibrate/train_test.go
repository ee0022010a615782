package calibrate

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"sparseserve/hw"
)

// Linears and decodes of a train are those that began nearest to the point's time; chunks are told
// by those before them.
func TestTrainPoints(t *testing.T) {
	t.Parallel()
	groups := []trainGroup{{0, 1}, {0.004, 2}, {0.009, 3}, {0.014, 4}}
	for ms, want := range map[int64]int{1: 0, 3: 1, 6: 1, 7: 2, 200: 3} {
		if i := trainAt(groups, point(probeClock, shapes[0], clockTokens, ms)); i != want {
			t.Errorf("after %d ms: group %d, want %d", ms, i, want)
		}
		if i := trainAt(groups, point(probeDecodes, shapes[0], decodesBatch, decodesContext, ms)); i != want {
			t.Errorf("decodes after %d ms: group %d, want %d", ms, i, want)
		}
	}
	for i := range promptsInARow * promptChunks {
		at := point(probePrompt, shapes[0], clockTokens, int64(i%promptChunks)*clockTokens, int64(1+i/promptChunks))
		if got := trainAt(groups, at); got != i {
			t.Errorf("behind %d chunks: group %d", i, got)
		}
	}
}

// A sample of the clock is the mean of its rounds, each dealt once.
func TestDealtMeans(t *testing.T) {
	t.Parallel()
	if got := dealtMeans([]float64{1, 2, 3, 4, 11, 12, 13, 14}, 4); !slices.Equal(got, []float64{6, 7, 8, 9}) {
		t.Errorf("means %v", got)
	}
}

// What decodes feel of the clock comes from how they change behind linears alone: without
// such samples, and of a card whose decodes feel nothing, nothing is said of it, and
// other figures do not depend on it.
func TestDecodesOfTrains(t *testing.T) {
	t.Parallel()
	want := truth("a100-40gb")
	fake := newFake(want, 0, 1)
	samples := func(bend func(p Point, exact float64) float64) *Samples {
		s := &Samples{}
		for _, p := range slices.Concat(linearPoints(scaleOf(Full)), clockPoints(scaleOf(Full))) {
			if t := bend(p, fake.seconds(p)); t > 0 {
				s.Records = append(s.Records, Record{p, []float64{t}})
			}
		}
		return s
	}
	fit := func(s *Samples) (hw.Clock, []model) {
		p := *want
		models := fitClock(s, &p, source{"a test"})
		return p.Clock, models
	}
	got, models := fit(samples(func(_ Point, exact float64) float64 { return exact }))
	for _, c := range [][2]hw.Figure{{got.Decode, want.Clock.Decode}, {got.Linears, want.Clock.Linears}} {
		if e := c[0].SI()/c[1].SI() - 1; !(math.Abs(e) < 0.02) {
			t.Errorf("%+v, want %+v", c[0], c[1])
		}
	}
	if !slices.ContainsFunc(models, func(m model) bool { return m.name == "clock.decode" && len(m.fit) > 0 && len(m.held) > 0 }) {
		t.Error("no model of it with points held out")
	}
	got.Decode, got.Linears = hw.Figure{}, hw.Figure{}
	for _, c := range []struct {
		name string
		bend func(p Point, exact float64) float64
	}{
		{"without samples", func(Point, float64) float64 { return 0 }},
		{"without change", func(Point, float64) float64 { return 1e-4 }},
		{"faster than long after", func(p Point, _ float64) float64 { return 1e-4 + 1e-9*float64(p.At("after_ms")) }},
	} {
		p, models := fit(samples(func(p Point, exact float64) float64 {
			if p.Probe == probeDecodes {
				return c.bend(p, exact)
			}
			return exact
		}))
		if !reflect.DeepEqual(p, got) || slices.ContainsFunc(models, func(m model) bool { return m.name == "clock.decode" }) {
			t.Errorf("%s: %+v, want %+v", c.name, p, got)
		}
	}
}
