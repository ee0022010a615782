package figures

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
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
	plt.Add(grid())
	if len(c.groups) > 0 {
		addBars(plt, c, looks)
		plt.Add(curvesPlotter{c, looks})
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
			plt.Add(c.band(&one, looks[one.series].color))
		}
	}
	plt.Add(curvesPlotter{c, looks})
	if len(c.labels) > 0 {
		plt.Add(notePlotter{c})
	}
}

// grid is faint lines at the labelled ticks of y.
func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color, g.Horizontal.Width = nil, color.Gray{0xdd}, 0.6
	return g
}

// marks draws the chart's dashed lines, and a solid one at y = 0 where y can be less.
type marks struct{ chart *chart }

func (m marks) Plot(c draw.Canvas, plt *plot.Plot) {
	toX, toY := plt.Transforms(&c)
	style := draw.LineStyle{Color: color.Gray{0x80}, Width: 0.9, Dashes: []vg.Length{4, 3}}
	for _, x := range m.chart.marks {
		at := toX(m.chart.xOf(x))
		c.StrokeLine2(style, at, c.Min.Y, at, c.Max.Y)
	}
	if a := m.chart.axis; a.low < 0 && !a.log {
		zero := draw.LineStyle{Color: color.Gray{0x60}, Width: 1}
		c.StrokeLine2(zero, c.Min.X, toY(0), c.Max.X, toY(0))
	}
	for _, y := range m.chart.levels {
		at := toY(m.chart.axis.of(y))
		c.StrokeLine2(style, c.Min.X, at, c.Max.X, at)
	}
}

// place maps x and y to the canvas.
func (c *chart) place(canvas *draw.Canvas, plt *plot.Plot) (x, y func(float64) vg.Length) {
	toX, toY := plt.Transforms(canvas)
	return func(v float64) vg.Length { return toX(c.xOf(v)) },
		func(v float64) vg.Length { return toY(c.axis.of(v)) }
}

// bandCurves is how many curves have bands: more hide one another.
const bandCurves = 5

// banded says whether a curve has a band.
func (c *chart) banded(one *curve) bool {
	any := false
	for _, q := range one.points {
		if q.runs < fewest {
			return false
		}
		any = any || q.high > q.low
	}
	return any && len(c.curves) <= bandCurves && !one.bare
}

// whiskered reports whether a curve has whiskers, or dots of single runs.
func (c *chart) whiskered(one *curve) bool { return !one.bare }

// band shades the confidence intervals of a curve within the panel.
func (c *chart) band(one *curve, ink color.Color) *plotter.Polygon {
	r, g, b, _ := ink.RGBA()
	band := &plotter.Polygon{Color: color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0x26}}
	within := func(v float64) float64 { return c.axis.of(min(max(v, c.axis.low), c.axis.high)) }
	var lows, highs plotter.XYs
	for _, q := range one.points {
		if q.mean <= c.axis.high {
			lows = append(lows, plotter.XY{X: c.xOf(q.x), Y: within(q.low)})
			highs = append(highs, plotter.XY{X: c.xOf(q.x), Y: within(q.high)})
		}
	}
	slices.Reverse(highs)
	band.XYs = []plotter.XYs{append(lows, highs...)}
	return band
}
