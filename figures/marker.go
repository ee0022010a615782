package figures

import (
	"image/color"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// look is the style of one series. Colour, lightness, marker and dashes all differ, so series are
// distinguishable in greyscale.
type look struct {
	color  color.Color
	marker marker
	dashes []vg.Length
	width  vg.Length
}

// marker draws the outline of a symbol of radius r around (0, 0), clockwise.
type marker func(r vg.Length) []vg.Point

// looks are the looks of the palette, by colour.
var looks = []look{
	{nil, circle, nil, 1.5},
	{nil, square, []vg.Length{7, 3}, 1.5},
	{nil, triangle, []vg.Length{2, 2.5}, 1.8},
	{nil, diamond, nil, 2.2},
	{nil, down, []vg.Length{8, 2.5, 2, 2.5}, 1.5},
	{nil, circle, []vg.Length{4, 2}, 1.5},
	{nil, square, []vg.Length{1.5, 2}, 1.5},
	{nil, triangle, nil, 1.5},
	{nil, down, nil, 1.5},
}

// lookOf returns the look of a line: that of its colour, with another symbol if lines before have
// the same colour.
func lookOf(l *doc.Line, others []look) look {
	ink := colorOf(l.Color)
	n, round := len(others), 0
	for i := range looks {
		if hex, _ := doc.Color(i); hex == l.Color {
			n = i
		}
	}
	for _, other := range others {
		if other.color == ink {
			round++
		}
	}
	own := looks[n%len(looks)]
	own.color, own.marker = ink, looks[(n+round)%len(looks)].marker
	switch {
	case !l.Dashed:
		own.dashes = nil
	case own.dashes == nil:
		own.dashes = []vg.Length{7, 3}
	}
	return own
}

// colorOf returns the colour #rrggbb, or grey for another text.
func colorOf(hex string) color.Color {
	if len(hex) == 7 {
		if v, err := strconv.ParseUint(hex[1:], 16, 32); err == nil {
			return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
		}
	}
	return color.Gray{0x7a}
}

// Radii of the markers of means and of single dots, in points.
const (
	markerRadius = 4.2
	ringRadius   = 2.4
)

// drawMarker draws a symbol of radius r at p, filled or hollow.
func drawMarker(c *draw.Canvas, l look, p vg.Point, r vg.Length, hollow bool) {
	var path vg.Path
	for i, q := range l.marker(r) {
		if i == 0 {
			path.Move(p.Add(q))
		} else {
			path.Line(p.Add(q))
		}
	}
	path.Close()
	c.SetColor(l.color)
	if hollow {
		c.SetColor(color.White)
	}
	c.Fill(path)
	c.SetLineStyle(draw.LineStyle{Color: l.color, Width: r / 2.8})
	c.Stroke(path)
}
