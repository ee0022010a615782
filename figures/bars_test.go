package figures

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// An axis has its bars, intervals and levels, and reads where all is 0. Notes are within the
// picture, and leave most of it to the bars.
func TestBarsFitTheirAxis(t *testing.T) {
	up := 7.0
	for name, c := range map[string]struct {
		chart doc.Chart
		most  float64
	}{
		"zeros":    {doc.Chart{Bars: barsOf(0, nil)}, 1},
		"a level":  {doc.Chart{Levels: []float64{100}, Bars: barsOf(3, nil)}, 100},
		"whiskers": {doc.Chart{Bars: barsOf(3, &up)}, 7},
		"one note": {doc.Chart{Bars: []doc.Bar{{Note: strings.Repeat("long ", 400),
			Parts: []doc.Part{{Value: 2}}}}}, 2},
	} {
		plt := newBars(&c.chart).plot(barsWidth)
		if plt.X.Min != 0 || plt.X.Max < c.most || len(linearTicks(0, c.most)) == 0 {
			t.Errorf("%s: the axis is from %g to %g, want 0 to %g or more", name,
				plt.X.Min, plt.X.Max, c.most)
		}
		data := plt.DataCanvas(draw.NewCanvas(new(recorder.Canvas), barsWidth, 200))
		for _, box := range plt.GlyphBoxes(plt) {
			if end := data.X(box.X) + box.Max.X; end > barsWidth+1 || data.Size().X < 0.4*barsWidth {
				t.Errorf("%s: bars are %g points wide, and a note ends at %g", name, data.Size().X, end)
			}
		}
	}
}

func barsOf(value float64, high *float64) []doc.Bar {
	return []doc.Bar{{Name: "a", Parts: []doc.Part{{Name: "x", Value: value,
		Sample: doc.Sample{Low: new(0.0), High: high}}}}}
}

// Counts have whole numbers as ticks, also below 2.
func TestTicksOfCountsAreWhole(t *testing.T) {
	for _, high := range []float64{1.08, 1.9, 3.24, 700} {
		ticks := axis{high: high, whole: true}.Ticks(0, 0)
		for _, tick := range ticks {
			if tick.Value != math.Round(tick.Value) {
				t.Errorf("to %g: a tick at %g", high, tick.Value)
			}
		}
		if len(ticks) < 2 {
			t.Errorf("to %g: %d ticks", high, len(ticks))
		}
	}
}

// A cut bar has all its parts, each in its share, and its value beside it.
func TestACutBarHasAllItsParts(t *testing.T) {
	parts := func(first, second float64) []doc.Part {
		return []doc.Part{{Name: "compute", Value: first}, {Name: "loads", Value: second}}
	}
	p := newBars(&doc.Chart{Bars: []doc.Bar{{Parts: parts(20, 10)},
		{Parts: parts(20, 12)}, {Parts: parts(100, 900)}}})
	cut, whole := p.boxes(&p.Bars[2]), p.boxes(&p.Bars[0])
	if math.Abs(cut[0][1]-p.cut/10) > 1e-9 || math.Abs(cut[1][1]-p.cut) > 1e-9 ||
		p.noteOf(&p.Bars[2]) != "1000 (cut)" {
		t.Errorf("cut at %g: parts %v, %q", p.cut, cut, p.noteOf(&p.Bars[2]))
	}
	if whole[0][1] != 20 || whole[1][1] != 30 {
		t.Errorf("parts %v", whole)
	}
}

// The legend has each part once, in its colour.
func TestPartsOfBars(t *testing.T) {
	p := newBars(&doc.Chart{Bars: []doc.Bar{
		{Name: "a", Parts: []doc.Part{{Name: "x", Color: "#0072b2", Value: 1},
			{Name: "y", Color: "no colour", Value: 2}}},
		{Name: "b", Parts: []doc.Part{{Name: "x", Color: "#0072b2", Value: 3}, {Name: "b", Value: 1}}}}})
	legend := withParts(nil, p.Bars)
	if len(legend) != 2 || legend[0].look.color != colorOf("#0072b2") ||
		legend[1].look.color != colorOf("") {
		t.Errorf("the legend is %+v", legend)
	}
	if _, high := p.furthest(&p.Bars[0]); high != 3 || p.noteOf(&p.Bars[0]) != "3.00" ||
		len(p.names()) != 2 || p.y[0]-p.y[1] != vg.Length(barSize+barGap).Points() {
		t.Errorf("the bars are %+v", p.Bars)
	}
}
