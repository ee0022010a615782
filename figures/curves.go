package figures

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// lines draws a line chart: intervals or single runs, lines, then markers.
func (p *panel) lines(c draw.Canvas, x, y func(float64) vg.Length) {
	for i := range p.Lines {
		p.intervals(&c, i, x, y)
	}
	for i := range p.Lines {
		l := &p.Lines[i]
		if l.Dots {
			continue
		}
		look, line := p.looks[l.Name], make([]vg.Point, len(l.Points))
		for k := range l.Points {
			line[k] = p.at(&l.Points[k], x, y)
		}
		c.StrokeLines(draw.LineStyle{Color: look.color, Width: look.width, Dashes: look.dashes},
			c.ClipLinesXY(line)...)
	}
	numbers := map[vg.Length]int{}
	for i := range p.Lines {
		l := &p.Lines[i]
		if l.Bare {
			continue
		}
		look := p.looks[l.Name]
		for k := range l.Points {
			q := &l.Points[k]
			switch at := p.at(q, x, y); {
			case at.Y > c.Max.Y:
				drawLeft(&c, look, at.X, numbers[at.X], stats.Digits(q.Y))
				numbers[at.X]++
			case l.Dots && l.Name != doc.Published:
				drawMarker(&c, look, at, ringRadius, true)
			default:
				drawMarker(&c, look, at, markerRadius, l.Dots || q.Unstable || q.Rejects)
			}
		}
	}
}

// intervals draws the intervals or single runs of line i, slightly beside its markers, so that
// lines with the same x do not hide each other.
func (p *panel) intervals(c *draw.Canvas, i int, x, y func(float64) vg.Length) {
	l, n := &p.Lines[i], vg.Length(len(p.Lines))
	aside := (vg.Length(i) - (n-1)/2) * min(2.5, 16/n)
	ink := p.looks[l.Name].color
	for k := range l.Points {
		q := &l.Points[k]
		at := p.at(q, x, y)
		if l.Bare || at.Y > c.Max.Y {
			continue
		}
		drawRuns(c, ink, at.X+aside, q.Runs, p.y, y)
		if q.Shown() {
			drawWhisker(c, ink, at.X+aside, *q.Low, *q.High, p.y, y)
		}
	}
}

// drawLeft marks a point above the panel with its symbol at the upper edge and its number. The nth
// such point at the same x is below the points before.
func drawLeft(c *draw.Canvas, l look, x vg.Length, nth int, number string) {
	at := vg.Point{X: x, Y: c.Max.Y - 7 - 15*vg.Length(nth)}
	drawMarker(c, l, at, markerRadius, true)
	style := noteStyle()
	style.XAlign, style.YAlign = text.XLeft, text.YCenter
	from, width := at.X+markerRadius+4, style.Width(number)
	if from+width > c.Max.X+margin {
		from = at.X - markerRadius - 4 - width
	}
	box := vg.Rectangle{Min: vg.Point{X: from - 1, Y: at.Y - 6},
		Max: vg.Point{X: from + width + 1, Y: at.Y + 6}}
	c.SetColor(color.White)
	c.Fill(box.Path())
	c.FillText(style, vg.Point{X: from, Y: at.Y + 1}, number)
}

// drawRuns draws single runs as dots within the axis.
func drawRuns(c *draw.Canvas, ink color.Color, x vg.Length, runs []float64, a axis,
	y func(float64) vg.Length) {
	for _, v := range runs {
		if v >= a.low && v <= a.high {
			drawDot(c, ink, vg.Point{X: x, Y: y(a.of(v))}, runRadius)
		}
	}
}

// runRadius is the radius of a single run's dot, in points.
const runRadius = 1.5

func drawDot(c *draw.Canvas, ink color.Color, at vg.Point, radius vg.Length) {
	c.SetColor(ink)
	var path vg.Path
	path.Move(at.Add(vg.Point{X: radius}))
	path.Arc(at, radius, 0, 2*math.Pi)
	path.Close()
	c.Fill(path)
}

// drawWhisker draws an interval. An end beyond the axis has no cap.
func drawWhisker(c *draw.Canvas, ink color.Color, x vg.Length, low, high float64, a axis,
	y func(float64) vg.Length) {
	style := draw.LineStyle{Color: ink, Width: 1}
	c.StrokeLine2(style, x, y(a.of(max(low, a.low))), x, y(a.of(min(high, a.high))))
	for _, v := range []float64{low, high} {
		if v >= a.low && v <= a.high {
			c.StrokeLine2(style, x-3, y(a.of(v)), x+3, y(a.of(v)))
		}
	}
}
