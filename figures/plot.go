package figures

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
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
		plt.Add(bandPlotter{one, looks[one.series], c})
	}
	for _, one := range c.curves {
		plt.Add(curvePlotter{one, looks[one.series], c})
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
	toX, _ := plt.Transforms(&c)
	style := draw.LineStyle{Color: color.Gray{0x80}, Width: 0.9, Dashes: []vg.Length{4, 3}}
	for _, x := range m.chart.marks {
		at := toX(m.chart.xOf(x))
		c.StrokeLine2(style, at, c.Min.Y, at, c.Max.Y)
	}
}

// place maps the points of a curve to the canvas.
func (c *chart) place(one *curve, canvas *draw.Canvas, plt *plot.Plot) (x, y func(float64) vg.Length) {
	toX, toY := plt.Transforms(canvas)
	own := c.axis
	if one.right {
		own = c.right.axis
	}
	return func(v float64) vg.Length { return toX(c.xOf(v)) },
		func(v float64) vg.Length { return toY(own.onto(c.axis, v)) }
}

// onto places a value of this axis on another one that is drawn next to it.
func (a axis) onto(b axis, v float64) float64 {
	if a == b {
		return a.of(v)
	}
	share := (a.of(v) - a.of(a.low)) / (a.of(a.high) - a.of(a.low))
	return b.of(b.low) + share*(b.of(b.high)-b.of(b.low))
}

// bandPlotter shades the confidence intervals of a curve.
type bandPlotter struct {
	curve
	look
	chart *chart
}

func (d bandPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := d.chart.place(&d.curve, &c, plt)
	d.points = slices.DeleteFunc(slices.Clone(d.points), func(q point) bool { return y(q.mean) > c.Max.Y })
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

// curvePlotter draws a curve: its line, confidence intervals, then markers.
type curvePlotter struct {
	curve
	look
	chart *chart
}

func (d curvePlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := d.chart.place(&d.curve, &c, plt)
	at := func(q point) vg.Point { return vg.Point{X: x(q.x), Y: y(q.mean)} }
	line := make([]vg.Point, len(d.points))
	for i, q := range d.points {
		line[i] = at(q)
	}
	c.StrokeLines(draw.LineStyle{Color: d.color, Width: d.width, Dashes: d.dashes}, c.ClipLinesXY(line)...)
	if d.bare {
		return
	}
	for _, q := range d.points {
		if at(q).Y > c.Max.Y { // out of the panel: its value at the edge
			style := noteStyle()
			style.Color, style.XAlign, style.YAlign = d.color, text.XLeft, text.YTop
			c.FillText(style, vg.Point{X: x(q.x) + 4, Y: c.Max.Y}, d.series+" "+tickLabel(math.Round(q.mean)))
			continue
		}
		if q.high > q.low {
			drawWhisker(&c, d.color, x(q.x), max(y(q.low), c.Min.Y), min(y(q.high), c.Max.Y))
		}
		drawMarker(&c, d.look, at(q), q.unstable)
	}
}

func drawWhisker(c *draw.Canvas, color color.Color, x, low, high vg.Length) {
	whisker := draw.LineStyle{Color: color, Width: 1}
	c.StrokeLine2(whisker, x, low, x, high)
	c.StrokeLine2(whisker, x-3, low, x+3, low)
	c.StrokeLine2(whisker, x-3, high, x+3, high)
}
