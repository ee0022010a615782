package figures

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// Text sizes in points.
const (
	labelSize = 14
	tickSize  = 12.5
	noteSize  = 11
)

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// noteStyle is the text style of a note at a point.
func noteStyle() text.Style {
	return text.Style{Color: color.Black, Font: sans(noteSize), XAlign: text.XCenter,
		Handler: plot.DefaultTextHandler}
}

// panel is a line chart with its axes. x and y of the plot are scaled.
type panel struct {
	*doc.Chart
	x, y  axis
	looks map[string]look
}

// newPlot sets up one line chart.
func newPlot(c *doc.Chart, looks map[string]look) *plot.Plot {
	doc.Fit(c)
	x := axis{c.XEnds[0], c.XEnds[1], c.LogX}
	p := &panel{c, x, axis{c.YEnds[0], c.YEnds[1], c.LogY}, looks}
	plt := plot.New()
	plt.Title.Text = c.Title
	plt.Title.TextStyle.Font = sans(labelSize)
	plt.Title.Padding = 6
	plt.X.Label.Text = c.X
	plt.Y.Label.Text = c.Y
	for _, axis := range []*plot.Axis{&plt.X, &plt.Y} {
		axis.Label.TextStyle.Font = sans(labelSize)
		axis.Label.Padding = 5
		axis.Tick.Label.Font = sans(tickSize)
		axis.LineStyle.Width = 0.8
		axis.Tick.LineStyle.Width = 0.8
		axis.Tick.Length = 5
		axis.Padding = 0
	}
	plt.X.Min, plt.X.Max = x.of(x.low), x.of(x.high)
	plt.Y.Min, plt.Y.Max = p.y.of(p.y.low), p.y.of(p.y.high)
	plt.X.Tick.Marker, plt.Y.Tick.Marker = x, p.y
	plt.Add(grid(), plotted(p.marks), plotted(p.lines), plotted(p.notes))
	return plt
}

// plotted draws one part of a panel.
type plotted func(c draw.Canvas, x, y func(float64) vg.Length)

// Plot implements plot.Plotter.
func (d plotted) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	d(c, x, y)
}

// grid returns faint lines at the labelled ticks of y.
func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color, g.Horizontal.Width = nil, color.Gray{0xdd}, 0.6
	return g
}

// at returns a point's position on the canvas.
func (p *panel) at(q *doc.Point, x, y func(float64) vg.Length) vg.Point {
	return vg.Point{X: x(p.x.of(q.X)), Y: y(p.y.of(q.Y))}
}

// marks draws the chart's dashed lines, and a solid line at y = 0 if y can be negative.
func (p *panel) marks(c draw.Canvas, x, y func(float64) vg.Length) {
	style := draw.LineStyle{Color: color.Gray{0x80}, Width: 0.9, Dashes: []vg.Length{4, 3}}
	if p.y.low < 0 && !p.y.log {
		zero := draw.LineStyle{Color: color.Gray{0x60}, Width: 1}
		c.StrokeLine2(zero, c.Min.X, y(0), c.Max.X, y(0))
	}
	for _, v := range p.Levels {
		at := y(p.y.of(v))
		c.StrokeLine2(style, c.Min.X, at, c.Max.X, at)
	}
}
