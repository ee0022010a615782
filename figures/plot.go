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

// noteStyle is that of the text at a point.
func noteStyle() text.Style {
	return text.Style{Color: color.Black, Font: sans(noteSize), XAlign: text.XCenter,
		Handler: plot.DefaultTextHandler}
}

// panel is a chart of lines on its axes. The plot's x and y are those of the axes, scaled.
type panel struct {
	*doc.Chart
	x, y  axis
	looks map[string]look
}

// newPlot sets up one chart of lines.
func newPlot(c *doc.Chart, looks map[string]look) *plot.Plot {
	doc.Fit(c)
	x, named := across(c)
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
	if named != nil {
		plt.X.Tick.Marker = x.ticksAt(named)
	}
	if c.Low {
		plt.Y.Tick.Marker = fewTicks{p.y}
	}
	plt.Add(grid(), plotted(p.marks))
	for i := range c.Lines {
		if p.banded(&c.Lines[i]) {
			plt.Add(p.band(&c.Lines[i]))
		}
	}
	plt.Add(plotted(p.lines), plotted(p.notes))
	return plt
}

// plotted draws a part of a panel.
type plotted func(c draw.Canvas, x, y func(float64) vg.Length)

// Plot implements plot.Plotter.
func (d plotted) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	d(c, x, y)
}

// grid is faint lines at the labelled ticks of y.
func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color, g.Horizontal.Width = nil, color.Gray{0xdd}, 0.6
	return g
}

// at is where a point is on the canvas.
func (p *panel) at(q *doc.Point, x, y func(float64) vg.Length) vg.Point {
	return vg.Point{X: x(p.x.of(q.X)), Y: y(p.y.of(q.Y))}
}

// marks draws the chart's dashed lines, and a solid one at y = 0 where y can be less.
func (p *panel) marks(c draw.Canvas, x, y func(float64) vg.Length) {
	style := draw.LineStyle{Color: color.Gray{0x80}, Width: 0.9, Dashes: []vg.Length{4, 3}}
	for _, v := range p.Marks {
		at := x(p.x.of(v))
		c.StrokeLine2(style, at, c.Min.Y, at, c.Max.Y)
	}
	if p.y.low < 0 && !p.y.log {
		zero := draw.LineStyle{Color: color.Gray{0x60}, Width: 1}
		c.StrokeLine2(zero, c.Min.X, y(0), c.Max.X, y(0))
	}
	for _, v := range p.Levels {
		at := y(p.y.of(v))
		c.StrokeLine2(style, c.Min.X, at, c.Max.X, at)
	}
}

// bandLines is how many lines have bands: more hide one another.
const bandLines = 5

// banded reports whether a line has a band: an interval at each point.
func (p *panel) banded(l *doc.Line) bool {
	any := false
	for i := range l.Points {
		if l.Points[i].N < doc.Fewest {
			return false
		}
		any = any || l.Points[i].Shown()
	}
	return any && len(p.Lines) <= bandLines && !l.Bare
}

// band shades the intervals of a line within the panel.
func (p *panel) band(l *doc.Line) *plotter.Polygon {
	r, g, b, _ := p.looks[l.Name].color.RGBA()
	band := &plotter.Polygon{Color: color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0x26}}
	within := func(v float64) float64 { return p.y.of(min(max(v, p.y.low), p.y.high)) }
	n := len(l.Points)
	edge := make(plotter.XYs, 0, 2*n)
	for i := range 2 * n {
		q := &l.Points[min(i, 2*n-1-i)]
		low, high := q.Ends(q.Y)
		if i >= n {
			low = high
		}
		if q.Y <= p.y.high {
			edge = append(edge, plotter.XY{X: p.x.of(q.X), Y: within(low)})
		}
	}
	band.XYs = []plotter.XYs{edge}
	return band
}
