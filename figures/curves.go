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

// A line is so much wider, and a marker's radius larger by half of it, for each later curve
// that would hide it: it shows as a border. Many curves have thinner ones.
const (
	layer  = 3.2
	layers = 9.6 // of all curves
)

func (d curvesPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	placed := make([][]vg.Point, len(d.curves))
	for i := range d.curves {
		x, y := d.place(&d.curves[i], &c, plt)
		for _, q := range d.curves[i].points {
			placed[i] = append(placed[i], vg.Point{X: x(q.x), Y: y(q.mean)})
		}
	}
	for i := range d.curves {
		one := &d.curves[i]
		if !d.whiskered(one) {
			continue
		}
		_, y := d.place(one, &c, plt)
		for k, q := range one.points {
			if at := placed[i][k]; at.Y <= c.Max.Y && q.high > q.low {
				drawWhisker(&c, d.looks[one.series].color, at.X+d.aside(i), q, d.axisOf(one), y)
			}
		}
	}
	for i := range d.curves {
		if !d.curves[i].dots {
			d.line(&c, i, placed)
		}
	}
	thick := vg.Length(0)
	if len(d.curves) > 0 && !d.curves[0].dots {
		thick = d.layer(placed)
	}
	numbers := map[vg.Length]int{}
	for i := range d.curves {
		if d.curves[i].bare {
			continue
		}
		one, look := &d.curves[i], d.looks[d.curves[i].series]
		for k, q := range one.points {
			at := placed[i][k]
			if at.Y > c.Max.Y {
				drawLeft(&c, look, at.X, numbers[at.X], leftLabel(q.mean))
				numbers[at.X]++
				continue
			}
			if one.dots {
				drawRing(&c, look, at)
				continue
			}
			r := markerRadius + thick/2*vg.Length(len(covers(placed, i, at)))
			drawMarker(&c, look, at, r, q.unstable || q.rejects)
		}
	}
}

// line draws curve i, cut at the panel's edges; where later ones have the same points it
// is wider than they are.
func (d curvesPlotter) line(c *draw.Canvas, i int, placed [][]vg.Point) {
	look := d.looks[d.curves[i].series]
	style := draw.LineStyle{Color: look.color, Width: look.width, Dashes: look.dashes}
	run := placed[i][:min(1, len(placed[i]))]
	width, thick := 0, d.layer(placed)
	for k := 1; k < len(placed[i]); k++ {
		w := 0
		if !d.curves[i].bare {
			after := covers(placed, i, placed[i][k])
			for _, j := range covers(placed, i, placed[i][k-1]) {
				for _, l := range after {
					if j == l {
						w++
					}
				}
			}
		}
		if w != width {
			stroke(c, style, thick*vg.Length(width), run)
			run, width = placed[i][k-1:k], w
		}
		run = append(run[:len(run):len(run)], placed[i][k])
	}
	stroke(c, style, thick*vg.Length(width), run)
}

func stroke(c *draw.Canvas, style draw.LineStyle, wider vg.Length, line []vg.Point) {
	if style.Width += wider; wider > 0 {
		style.Dashes = nil // gaps would be filled by the curve above
	}
	c.StrokeLines(style, c.ClipLinesXY(line)...)
}

// layer is the thickness of a border: less where many curves have a point in common.
func (d curvesPlotter) layer(placed [][]vg.Point) vg.Length {
	most := 0
	for i := range placed {
		for _, at := range placed[i] {
			most = max(most, len(covers(placed, i, at)))
		}
	}
	return min(layer, layers/vg.Length(max(1, most)))
}

// aside is how far from its marker the whisker of curve i is drawn, so that those of one
// x do not hide one another.
func (d curvesPlotter) aside(i int) vg.Length {
	n := vg.Length(len(d.curves))
	return (vg.Length(i) - (n-1)/2) * min(2.5, 16/n)
}

// covers lists the curves after i that have a point where curve i has one.
func covers(placed [][]vg.Point, i int, at vg.Point) []int {
	var all []int
	for j := i + 1; j < len(placed); j++ {
		for _, p := range placed[j] {
			if math.Hypot(float64(p.X-at.X), float64(p.Y-at.Y)) < markerRadius/2 {
				all = append(all, j)
				break
			}
		}
	}
	return all
}

// drawLeft marks a point above the panel: the symbol at the upper edge under an arrow,
// and its number. The nth at one x is below those before.
func drawLeft(c *draw.Canvas, l look, x vg.Length, nth int, number string) {
	at := vg.Point{X: x, Y: c.Max.Y - 11 - 15*vg.Length(nth)}
	drawArrow(c, l.color, vg.Point{X: x, Y: at.Y + markerRadius}, vg.Point{X: x, Y: at.Y + 11})
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

// drawWhisker draws an interval and returns its upper end. An end that the axis does not
// have is an arrow.
func drawWhisker(c *draw.Canvas, ink color.Color, x vg.Length, q point, a axis,
	y func(float64) vg.Length) vg.Length {
	below, above := q.leaves(a)
	low, high := max(y(math.Max(q.low, a.low)), c.Min.Y), min(y(math.Min(q.high, a.high)), c.Max.Y)
	style := draw.LineStyle{Color: ink, Width: 1}
	c.StrokeLine2(style, x, low, x, high)
	end := func(at vg.Length, arrow bool, toward vg.Length) {
		switch {
		case !arrow:
			c.StrokeLine2(style, x-3, at, x+3, at)
		case high-low > 8:
			drawArrow(c, ink, vg.Point{X: x, Y: at - 6*toward}, vg.Point{X: x, Y: at})
		}
	}
	end(low, below, -1)
	end(high, above, 1)
	return high
}

// drawArrow draws a line up or down that ends in a head.
func drawArrow(c *draw.Canvas, ink color.Color, from, to vg.Point) {
	c.StrokeLine2(draw.LineStyle{Color: ink, Width: 1}, from.X, from.Y, to.X, to.Y)
	length := vg.Length(5)
	if to.Y > from.Y {
		length = -length
	}
	c.FillPolygon(ink, []vg.Point{to, {X: to.X - 2.6, Y: to.Y + length},
		{X: to.X + 2.6, Y: to.Y + length}})
}
