package figures

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Text sizes in points.
const (
	labelSize = 14
	tickSize  = 12.5
)

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// newPlot sets up one panel. Its y is c.axis.of of the quantity.
func newPlot(c *chart, looks map[string]look) *plot.Plot {
	plt := plot.New()
	plt.Title.Text = c.title
	plt.Title.TextStyle.Font = sans(labelSize)
	plt.Title.Padding = 6
	plt.X.Label.Text = c.x
	plt.Y.Label.Text = c.y
	for _, axis := range []*plot.Axis{&plt.X, &plt.Y} {
		axis.Label.TextStyle.Font = sans(labelSize)
		axis.Label.Padding = 5
		axis.Tick.Label.Font = sans(tickSize)
		axis.LineStyle.Width = 0.8
		axis.Tick.LineStyle.Width = 0.8
		axis.Tick.Length = 5
		axis.Padding = 0
	}
	plt.Y.Min, plt.Y.Max = c.axis.of(c.axis.low), c.axis.of(c.axis.high)
	plt.Y.Tick.Marker = c.axis
	if c.low {
		plt.Y.Tick.Marker = fewTicks{c.axis}
	}
	plt.Add(grid{})
	if len(c.groups) > 0 {
		addBars(plt, c, looks)
	} else {
		addCurves(plt, c, looks)
	}
	return plt
}

func addCurves(plt *plot.Plot, c *chart, looks map[string]look) {
	x := spanOf(c.curves, abscissae)
	x.low, x.high = c.xOf(x.low), c.xOf(x.high)
	pad := 0.06 * (x.high - x.low)
	if pad == 0 {
		pad = math.Max(0.1*x.high, 0.01)
	}
	plt.X.Min, plt.X.Max = x.low-pad, x.high+pad
	plt.X.Tick.Marker = c.xTicks()
	if c.across != nil {
		plt.X.Min, plt.X.Max = c.xOf(c.across.low), c.xOf(c.across.high)
	}
	plt.Add(marks{c})
	for _, one := range c.curves {
		if c.banded(&one) {
			plt.Add(bandPlotter{one, looks[one.series], c})
		}
	}
	plt.Add(curvesPlotter{c, looks})
	if len(c.labels) > 0 {
		plt.Add(notePlotter{c})
	}
	if c.right != nil {
		plt.Add(rightAxis{c.right, c.axis})
	}
}

// grid draws faint lines at the labelled ticks of y.
type grid struct{}

func (grid) Plot(c draw.Canvas, plt *plot.Plot) {
	_, y := plt.Transforms(&c)
	own, ok := plt.Y.Tick.Marker.(axis)
	signed := ok && !own.log && own.low < 0
	for _, t := range plt.Y.Tick.Marker.Ticks(plt.Y.Min, plt.Y.Max) {
		style := draw.LineStyle{Color: color.Gray{0xdd}, Width: 0.6}
		if signed && math.Abs(t.Value) < 1e-9*(own.high-own.low) { // zero
			style = draw.LineStyle{Color: color.Gray{0x60}, Width: 1}
		}
		if !t.IsMinor() && t.Value >= plt.Y.Min && t.Value <= plt.Y.Max {
			c.StrokeLine2(style, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
}

// marks draws the chart's dashed lines.
type marks struct{ chart *chart }

func (m marks) Plot(c draw.Canvas, plt *plot.Plot) {
	toX, toY := plt.Transforms(&c)
	style := draw.LineStyle{Color: color.Gray{0x80}, Width: 0.9, Dashes: []vg.Length{4, 3}}
	for _, x := range m.chart.marks {
		at := toX(m.chart.xOf(x))
		c.StrokeLine2(style, at, c.Min.Y, at, c.Max.Y)
	}
	for _, y := range m.chart.levels {
		at := toY(m.chart.axis.of(y))
		c.StrokeLine2(style, c.Min.X, at, c.Max.X, at)
	}
}

// place maps the points of a curve to the canvas.
func (c *chart) place(one *curve, canvas *draw.Canvas, plt *plot.Plot) (x,
	y func(float64) vg.Length) {
	toX, toY := plt.Transforms(canvas)
	own := c.axisOf(one)
	return func(v float64) vg.Length { return toX(c.xOf(v)) },
		func(v float64) vg.Length { return toY(own.onto(c.axis, v)) }
}

// axisOf is the axis of a curve.
func (c *chart) axisOf(one *curve) axis {
	if one.right {
		return c.right.axis
	}
	return c.axis
}

// onto places a value of this axis on another one that is drawn next to it.
func (a axis) onto(b axis, v float64) float64 {
	if a == b {
		return a.of(v)
	}
	share := (a.of(v) - a.of(a.low)) / (a.of(a.high) - a.of(a.low))
	return b.of(b.low) + share*(b.of(b.high)-b.of(b.low))
}

// Bands are drawn of few curves, else they hide one another, and of enough runs: two
// have an interval that says little.
const (
	bandRuns   = 3
	bandCurves = 5
)

// banded says whether a curve has a band.
func (c *chart) banded(one *curve) bool {
	any := false
	for _, q := range one.points {
		if q.runs < bandRuns {
			return false
		}
		any = any || q.high > q.low
	}
	return any && len(c.curves) <= bandCurves && !one.bare
}

// whiskered says whether a curve has whiskers. Those of two runs and many curves would
// hide everything.
func (c *chart) whiskered(one *curve) bool {
	few := func(q point) bool { return q.runs < bandRuns }
	return !one.bare && (len(c.curves) <= bandCurves || !slices.ContainsFunc(one.points, few))
}

// bandPlotter shades the confidence intervals of a curve.
type bandPlotter struct {
	curve
	look
	chart *chart
}

func (d bandPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := d.chart.place(&d.curve, &c, plt)
	d.points = slices.DeleteFunc(slices.Clone(d.points),
		func(q point) bool { return y(q.mean) > c.Max.Y })
	var outline []vg.Point
	for _, q := range d.points {
		outline = append(outline, vg.Point{X: x(q.x), Y: d.clamp(&c, y(q.low))})
	}
	for i := range d.points {
		q := d.points[len(d.points)-1-i]
		outline = append(outline, vg.Point{X: x(q.x), Y: d.clamp(&c, y(q.high))})
	}
	r, g, b, _ := d.color.RGBA()
	c.FillPolygon(color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0x26}, outline)
}

func (bandPlotter) clamp(c *draw.Canvas, y vg.Length) vg.Length {
	return min(max(y, c.Min.Y), c.Max.Y)
}
