package figures

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
)

const ringRadius = 2.4

// drawRing draws a small hollow symbol.
func drawRing(c *draw.Canvas, l look, at vg.Point) {
	outline := l.marker(ringRadius)
	for i := range outline {
		outline[i] = outline[i].Add(at)
	}
	c.StrokeLines(draw.LineStyle{Color: l.color, Width: 0.9}, append(outline, outline[0]))
}

// mostNotes is the most dots with notes; more notes would hide the dots.
const mostNotes = 20

// notes writes the notes of dots, each with a line to its point. A note hides no dot and no other
// note.
func (p *panel) notes(c draw.Canvas, x, y func(float64) vg.Length) {
	var taken, written []vg.Rectangle
	var noted []*doc.Point
	for i := range p.Lines {
		for k := range p.Lines[i].Points {
			q := &p.Lines[i].Points[k]
			taken = append(taken, around(p.at(q, x, y), ringRadius+1, ringRadius+1))
			if p.Lines[i].Dots && q.Note != "" {
				noted = append(noted, q)
			}
		}
	}
	if len(noted) > mostNotes {
		return
	}
	for _, level := range p.Levels {
		at := y(p.y.of(level))
		taken = append(taken, vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: at - 0.5},
			Max: vg.Point{X: c.Max.X, Y: at + 0.5}})
	}
	style := noteStyle()
	style.Font.Size, style.YAlign = 9.5, text.YCenter
	for _, q := range noted {
		at, width := p.at(q, x, y), style.Width(q.Note)/2+2
		center, ok := free(c.Rectangle, taken, written, at, width, 7)
		if !ok {
			continue
		}
		from := leader(at, center, width)
		c.StrokeLine2(draw.LineStyle{Color: color.Gray{0x90}, Width: 0.6}, at.X, at.Y, from.X, from.Y)
		c.FillText(style, center, q.Note)
		taken = append(taken, around(center, width, 7), between(at, from))
		written = append(written, around(center, width, 7))
	}
}

// leader returns the end of a note's line, at its nearer edge.
func leader(at, center vg.Point, width vg.Length) vg.Point {
	return vg.Point{X: min(max(at.X, center.X-width), center.X+width),
		Y: center.Y + vg.Length(math.Copysign(6, float64(at.Y-center.Y)))}
}

func between(a, b vg.Point) vg.Rectangle {
	return vg.Rectangle{
		Min: vg.Point{X: min(a.X, b.X) - 0.5, Y: min(a.Y, b.Y)},
		Max: vg.Point{X: max(a.X, b.X) + 0.5, Y: max(a.Y, b.Y)},
	}
}

func around(p vg.Point, width, height vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: p.X - width, Y: p.Y - height},
		Max: vg.Point{X: p.X + width, Y: p.Y + height}}
}

// free returns the nearest place for a box in the panel that overlaps nothing, and whose line
// crosses no note.
func free(panel vg.Rectangle, taken, written []vg.Rectangle, at vg.Point, width, height vg.Length) (
	vg.Point, bool) {
	for away := vg.Length(14); away < 160; away += 6 {
		for _, side := range []vg.Length{0, -0.5, 0.5, -1, 1} {
			for _, up := range []vg.Length{1, -1} {
				p := vg.Point{X: at.X + side*(width+4), Y: at.Y + up*away}
				p.X = min(max(p.X, panel.Min.X+width), panel.Max.X-width)
				box := around(p, width, height)
				if box.Max.Y < panel.Max.Y && box.Min.Y > panel.Min.Y && !meets(box, taken) &&
					!meets(between(at, leader(at, p, width)), written) {
					return p, true
				}
			}
		}
	}
	return at, false
}

func meets(box vg.Rectangle, taken []vg.Rectangle) bool {
	for _, t := range taken {
		if box.Min.X < t.Max.X && t.Min.X < box.Max.X && box.Min.Y < t.Max.Y && t.Min.Y < box.Max.Y {
			return true
		}
	}
	return false
}
