package figures

import (
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// The interval of a share ends at 0 and 100 %, that of another metric at 0 alone.
func TestEffectsAreOfThePossible(t *testing.T) {
	low, high := -150.0, 40.0
	for label, want := range map[string]float64{"hits in HBM (%)": 100, "goodput (requests/s)": 126} {
		panels, _ := rowsOf([]*doc.Chart{{Kind: doc.Effects, Y: label, Base: 90,
			Effects: []doc.Effect{{Value: 95, Low: &low, High: &high}}}})
		bar := &panels[0].(*rowPanel).bars[0]
		if *bar.Low != 0 || math.Abs(*bar.High-want) > 1e-9 {
			t.Errorf("%s: interval %g to %g, want 0 to %g", label, *bar.Low, *bar.High, want)
		}
	}
}

// An axis has room for its bars, intervals, levels and notes, and reads where all is 0.
func TestRowsFitTheirAxis(t *testing.T) {
	up := 7.0
	for name, c := range map[string]struct {
		chart doc.Chart
		most  float64
	}{
		"zeros":    {doc.Chart{Kind: doc.Effects, Effects: []doc.Effect{{}}}, 1},
		"a level":  {doc.Chart{Kind: doc.Bars, Levels: []float64{100}, Bars: barsOf(3, nil)}, 100},
		"whiskers": {doc.Chart{Kind: doc.Bars, Bars: barsOf(3, &up)}, 7},
		"one note": {doc.Chart{Kind: doc.Bars, Bars: []doc.Bar{{Note: strings.Repeat("long ", 400),
			Parts: []doc.Part{{Value: 2}}}}}, 2},
	} {
		panels, _ := rowsOf([]*doc.Chart{&c.chart})
		p := panels[0].(*rowPanel)
		if !(p.low <= 0) || !(p.high > c.most) || p.high > 3*c.most || len(linearTicks(p.low,
			p.high)) == 0 {
			t.Errorf("%s: the axis is from %g to %g, want it to hold %g", name, p.low, p.high, c.most)
		}
	}
}

func barsOf(value float64, high *float64) []doc.Bar {
	return []doc.Bar{{Name: "a", Parts: []doc.Part{{Name: "x", Value: value,
		Sample: doc.Sample{Low: new(0.0), High: high}}}}}
}

// The legend has each part once, in its colour.
func TestPartsOfRows(t *testing.T) {
	bars := []doc.Bar{
		{Name: "a", Parts: []doc.Part{{Name: "x", Color: "#0072b2", Value: 1},
			{Name: "y", Color: "no colour", Value: 2}}},
		{Name: "b", Parts: []doc.Part{{Name: "x", Color: "#0072b2", Value: 3}, {Name: "b", Value: 1}}}}
	panels, legend := rowsOf([]*doc.Chart{{Kind: doc.Bars, Bars: bars}})
	if len(legend) != 2 || legend[0].look.color != colorOf("#0072b2") ||
		legend[1].look.color != colorOf("") {
		t.Errorf("the legend is %+v", legend)
	}
	p := panels[0].(*rowPanel)
	if _, high := p.furthest(&p.bars[0]); high != 3 || p.noteOf(&p.bars[0]) != "3.00" ||
		len(p.groups()) != 2 {
		t.Errorf("the bars are %+v", p.bars)
	}
}
