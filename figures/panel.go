package figures

import (
	"image/color"
	"math"

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

// newPlot sets up one panel: the metric against the request rate. The plot's y
// is y.of of the metric.
func newPlot(m metric, p panel, y axis, title string, looks map[string]look) *plot.Plot {
	plt := plot.New()
	plt.Title.Text = title
	plt.Title.TextStyle.Font = sans(labelSize)
	plt.Title.Padding = 6
	plt.X.Label.Text = "Req Rate (req/s)"
	plt.Y.Label.Text = m.label
	for _, axis := range []*plot.Axis{&plt.X, &plt.Y} {
		axis.Label.TextStyle.Font = sans(labelSize)
		axis.Label.Padding = 5
		axis.Tick.Label.Font = sans(tickSize)
		axis.LineStyle.Width = 0.8
		axis.Tick.LineStyle.Width = 0.8
		axis.Tick.Length = 5
		axis.Padding = 0
	}

	x := rangeOf([]panel{p}, func(q point) (float64, float64) { return q.rate, q.rate })
	pad := 0.06 * (x.high - x.low)
	if pad == 0 {
		pad = math.Max(0.1*x.high, 0.01)
	}
	plt.X.Min, plt.X.Max = x.low-pad, x.high+pad
	plt.X.Tick.Marker = rateTicks(p)

	plt.Y.Min, plt.Y.Max = y.of(y.low), y.of(y.high)
	plt.Y.Tick.Marker = y
	plt.Add(grid{})
	for _, c := range p.curves {
		plt.Add(curvePlotter{c, looks[c.system], y})
	}
	return plt
}

// grid draws faint lines at the labelled ticks of y.
type grid struct{}

func (grid) Plot(c draw.Canvas, plt *plot.Plot) {
	_, y := plt.Transforms(&c)
	style := draw.LineStyle{Color: color.Gray{0xdd}, Width: 0.6}
	for _, t := range plt.Y.Tick.Marker.Ticks(plt.Y.Min, plt.Y.Max) {
		if !t.IsMinor() && t.Value >= plt.Y.Min && t.Value <= plt.Y.Max {
			c.StrokeLine2(style, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
}

// curvePlotter draws a curve: its line, confidence intervals, then markers.
type curvePlotter struct {
	curve
	look
	axis axis
}

func (d curvePlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, toY := plt.Transforms(&c)
	y := func(v float64) vg.Length { return toY(d.axis.of(v)) }
	at := func(q point) vg.Point { return vg.Point{X: x(q.rate), Y: y(q.mean)} }
	line := make([]vg.Point, len(d.points))
	for i, q := range d.points {
		line[i] = at(q)
	}
	c.StrokeLines(draw.LineStyle{Color: d.color, Width: d.width, Dashes: d.dashes}, line)
	whisker := draw.LineStyle{Color: d.color, Width: 1}
	for _, q := range d.points {
		if q.high == q.low {
			continue
		}
		low, high := y(math.Max(q.low, d.axis.low)), y(q.high)
		c.StrokeLine2(whisker, x(q.rate), low, x(q.rate), high)
		c.StrokeLine2(whisker, x(q.rate)-3, low, x(q.rate)+3, low)
		c.StrokeLine2(whisker, x(q.rate)-3, high, x(q.rate)+3, high)
	}
	for _, q := range d.points {
		drawMarker(&c, d.look, at(q), q.unstable)
	}
}
