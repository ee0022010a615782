package figures

import (
	"bytes"
	"cmp"
	"context"
	"image/color"
	"math"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/internal/files"
)

// fittedPoint is a measured point and what the fit says of it. Times are in us.
type fittedPoint struct {
	part, name             string
	x, bytes               float64
	measured, fitted, most float64
}

// DrawFits draws fits.csv of a calibration's folder into it: a picture fit-MODEL for each
// cost model, measured and fitted over the size, and fitted over measured. It returns the
// paths.
func DrawFits(ctx context.Context, dir string, formats ...string) ([]string, error) {
	pictures, err := fits(filepath.Join(dir, "fits.csv"))
	if err != nil {
		return nil, err
	}
	return writeAll(ctx, dir, pictures, formats)
}

// fits are the pictures of a table of fits.
func fits(path string) ([]picture, error) {
	text, err := files.ReadResult(path)
	if err != nil {
		return nil, err
	}
	t, err := parseTable(path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	var pictures []picture
	for from := 0; from < len(t.rows); {
		to := from + 1
		for to < len(t.rows) && t.text(to, "model") == t.text(from, "model") {
			to++
		}
		pictures = append(pictures, fitPicture(t, from, to))
		from = to
	}
	if t.err != nil {
		return nil, t.err
	}
	return pictures, nil
}

// Series of a picture of a fit.
const (
	fittedSeries = "fitted"
	usedSeries   = "measured, in the fit"
	heldSeries   = "measured, held out"
)

func fitPicture(t *table, from, to int) picture {
	var all []fittedPoint
	for row := from; row < to; row++ {
		all = append(all, fittedPoint{t.text(row, "part"), t.text(row, "point"), t.number(row, "x"),
			t.number(row, "bytes"),
			t.number(row, "measured_us"), t.number(row, "fitted_us"), t.number(row, "limit")})
	}
	name := t.text(from, "model")
	left := fitOverSize(all)
	left.x = t.text(from, "x_label")
	return picture{
		file: "fit-" + FileName(name), head: name + " on " + gpuLabel(t.text(from, "card")) + ", " +
			t.text(from, "quality"), charts: []chart{left, fitOverMeasured(all)},
		caption: "Dashed: as far off as a good fit is. Named: the points that the fit misses most. " +
			"Errors in the title are beyond what a measurement is uncertain by.",
		looks: map[string]look{
			fittedSeries: {color: color.Gray{0x60}, marker: cross},
			usedSeries:   {color: color.RGBA{0x00, 0x72, 0xb2, 0xff}, marker: circle},
			heldSeries:   {color: color.RGBA{0xc6, 0x2f, 0x1f, 0xff}, marker: square},
		},
	}
}

// fitOverSize draws times, or rates where bytes are counted, over the size.
func fitOverSize(all []fittedPoint) chart {
	c := chart{y: "us", curves: []curve{
		{series: fittedSeries, dots: true}, {series: usedSeries, dots: true},
		{series: heldSeries, dots: true},
	}}
	add := func(i int, p *fittedPoint, us float64) {
		v := us
		if p.bytes > 0 {
			c.y, v = "GB/s", p.bytes/us*1e-3
		}
		c.curves[i].points = append(c.curves[i].points, point{x: p.x, runs: 1, mean: v, low: v, high: v})
	}
	for i := range all {
		add(0, &all[i], all[i].fitted)
		add(partOf(&all[i]), &all[i], all[i].measured)
	}
	c.curves = slices.DeleteFunc(c.curves, func(one curve) bool { return len(one.points) == 0 })
	c.axis = wideLog(spanOf(c.curves, means))
	across := wideLog(spanOf(c.curves, abscissae))
	c.across = &across
	return c
}

func partOf(p *fittedPoint) int {
	if p.part == "held out" {
		return 2
	}
	return 1
}

// wideLog is a logarithmic axis around a span, a linear one where that is short or reaches 0.
func wideLog(s span) axis {
	switch {
	case !(s.low > 0):
		return linear(s)
	case s.high < leastLog*s.low:
		pad := math.Max(0.08*(s.high-s.low), 0.02*s.high)
		return axis{s.low - pad, s.high + pad, false}
	}
	return axis{s.low / 1.25, s.high * 1.25, true}
}

// namedPoints is how many points have their names next to them.
const namedPoints = 3

// fitOverMeasured draws fitted over measured.
func fitOverMeasured(all []fittedPoint) chart {
	c := chart{x: "Measured (us)", y: "Fitted / measured",
		curves: []curve{{series: usedSeries, dots: true}, {series: heldSeries, dots: true}}}
	s, times := span{0.8, 1.2}, union(nil)
	worst := slices.Clone(all)
	off := func(p *fittedPoint) float64 { return math.Abs(p.fitted/p.measured - 1) }
	slices.SortStableFunc(worst, func(a, b fittedPoint) int { return cmp.Compare(off(&b), off(&a)) })
	for i := range all {
		p := &all[i]
		ratio := p.fitted / p.measured
		one := &c.curves[partOf(p)-1]
		one.points = append(one.points, point{x: p.measured, runs: 1, mean: ratio, low: ratio,
			high: ratio})
		s = union([]span{s, {ratio, ratio}})
		times = union([]span{times, {p.measured, p.measured}})
	}
	for _, p := range worst[:min(namedPoints, len(worst))] {
		if p.name != "" {
			c.labels = append(c.labels, note{p.measured, p.fitted / p.measured, p.name})
		}
	}
	c.curves = slices.DeleteFunc(c.curves, func(one curve) bool { return len(one.points) == 0 })
	pad := 0.05 * (s.high - s.low)
	c.axis = axis{s.low - pad, s.high + pad, false}
	across := wideLog(times)
	c.across = &across
	c.levels = []float64{1 - all[0].most, 1, 1 + all[0].most}
	return c
}
