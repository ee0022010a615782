package figures

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// curvesPlotter draws the curves of a chart: confidence intervals, lines, then markers.
type curvesPlotter struct {
	*chart
	looks map[string]look
}

func (d curvesPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := d.place(&c, plt)
	for i := range d.curves {
		one := &d.curves[i]
		for _, q := range one.points {
			if !d.whiskered(one) || y(q.mean) > c.Max.Y {
				continue
			}
			drawRuns(&c, d.looks[one.series].color, x(q.x)+d.aside(i), q, d.axis, y)
			if q.values == nil && q.high > q.low {
				drawWhisker(&c, d.looks[one.series].color, x(q.x)+d.aside(i), q, d.axis, y)
			}
		}
	}
	for _, one := range d.curves {
		if !one.dots && !one.hollow {
			look, line := d.looks[one.series], make([]vg.Point, len(one.points))
			for k, q := range one.points {
				line[k] = vg.Point{X: x(q.x), Y: y(q.mean)}
			}
			c.StrokeLines(draw.LineStyle{Color: look.color, Width: look.width, Dashes: look.dashes},
				c.ClipLinesXY(line)...)
		}
	}
	numbers := map[vg.Length]int{}
	for _, one := range d.curves {
		if one.bare {
			continue
		}
		look := d.looks[one.series]
		for _, q := range one.points {
			at := vg.Point{X: x(q.x), Y: y(q.mean)}
			switch {
			case at.Y > c.Max.Y:
				drawLeft(&c, look, at.X, numbers[at.X], leftLabel(q.mean))
				numbers[at.X]++
			case one.dots:
				drawRing(&c, look, at)
			default:
				drawMarker(&c, look, at, markerRadius, q.unstable || q.rejects || one.hollow)
			}
		}
	}
}

// aside is how far from its marker the whisker of curve i is drawn, so that those of one
// x do not hide one another.
func (d curvesPlotter) aside(i int) vg.Length {
	n := vg.Length(len(d.curves))
	return (vg.Length(i) - (n-1)/2) * min(2.5, 16/n)
}

// drawLeft marks a point above the panel: the symbol at the upper edge and its number. The nth
// at one x is below those before.
func drawLeft(c *draw.Canvas, l look, x vg.Length, nth int, number string) {
	at := vg.Point{X: x, Y: c.Max.Y - 7 - 15*vg.Length(nth)}
	drawMarker(c, l, at, markerRadius, true)
	style := noteStyle()
	style.Color, style.XAlign, style.YAlign = darker(l.color), text.XLeft, text.YCenter
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

// leftLabel writes a number as tables do, and a large one in thousands.
func leftLabel(v float64) string {
	if v >= 1e5 {
		return digits(v/1e3) + "k"
	}
	return digits(v)
}

// darker is a colour that reads as text on white.
func darker(ink color.Color) color.Color {
	r, g, b, _ := ink.RGBA()
	if luma := 0.3*float64(r) + 0.59*float64(g) + 0.11*float64(b); luma < 0x8000 {
		return ink
	}
	return color.RGBA{uint8(r >> 9), uint8(g >> 9), uint8(b >> 9), 0xff}
}

// drawRuns draws the runs of a mean that has too few for an interval, as dots within the axis.
func drawRuns(c *draw.Canvas, ink color.Color, x vg.Length, q point, a axis,
	y func(float64) vg.Length) {
	c.SetColor(ink)
	for _, v := range q.values {
		if v >= a.low && v <= a.high {
			at := vg.Point{X: x, Y: y(v)}
			var path vg.Path
			path.Move(at.Add(vg.Point{X: runRadius}))
			path.Arc(at, runRadius, 0, 2*math.Pi)
			path.Close()
			c.Fill(path)
		}
	}
}

// runRadius is that of the dot of a single run, in points.
const runRadius = 1.5

// drawWhisker draws an interval and returns its upper end. An end beyond the axis has no cap.
func drawWhisker(c *draw.Canvas, ink color.Color, x vg.Length, q point, a axis,
	y func(float64) vg.Length) vg.Length {
	low, high := y(math.Max(q.low, a.low)), y(math.Min(q.high, a.high))
	style := draw.LineStyle{Color: ink, Width: 1}
	c.StrokeLine2(style, x, low, x, high)
	if q.low >= a.low {
		c.StrokeLine2(style, x-3, low, x+3, low)
	}
	if q.high <= a.high {
		c.StrokeLine2(style, x-3, high, x+3, high)
	}
	return high
}
