package figures

import (
	"image/color"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// look is the style of one series. Colour, lightness, marker, dashes and hatching all differ, so
// series are distinguishable in greyscale.
type look struct {
	color    color.Color
	marker   marker
	dashes   []vg.Length
	width    vg.Length
	hatching vg.Length // distance of hatching lines in bars; 0 = none
}

// marker draws the outline of a symbol of radius r around (0, 0), clockwise.
type marker func(r vg.Length) []vg.Point

// looks returns the looks of the palette, by colour.
func looks() []look {
	all := []look{
		{nil, circle, nil, 1.5, 0},
		{nil, square, []vg.Length{7, 3}, 1.5, 6},
		{nil, triangle, []vg.Length{2, 2.5}, 1.8, 0},
		{nil, diamond, nil, 2.2, 4},
		{nil, down, []vg.Length{8, 2.5, 2, 2.5}, 1.5, 0},
		{nil, circle, []vg.Length{4, 2}, 1.5, 8},
		{nil, square, []vg.Length{1.5, 2}, 1.5, 0},
		{nil, triangle, nil, 1.5, 0},
		{nil, down, nil, 1.5, 5},
	}
	for i := range all {
		hex, _ := doc.Color(i)
		all[i].color = colorOf(hex)
	}
	return all
}

// lookOf returns the look of a line. If other lines have the same colour, its symbol and dashes
// differ: a dash and two dots, a dash and three dots, and so on.
func lookOf(l *doc.Line, others []look) look {
	all, ink := looks(), colorOf(l.Color)
	n, round := len(others), 0
	for i := range all {
		if all[i].color == ink {
			n = i
		}
	}
	for _, other := range others {
		if other.color == ink {
			round++
		}
	}
	own := all[n%len(all)]
	own.color = ink
	switch {
	case !l.Dashed:
		own.dashes = nil
	case own.dashes == nil:
		own.dashes = []vg.Length{7, 3}
	}
	if round > 0 && l.Dashed {
		own.dashes = []vg.Length{9, 2}
		for range round + 1 {
			own.dashes = append(own.dashes, 1.5, 2)
		}
	}
	if round > 0 {
		own.marker = all[(n+round)%len(all)].marker
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

const markerRadius = 4.2

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
	c.SetLineStyle(draw.LineStyle{Color: l.color, Width: 1.5})
	c.Stroke(path)
}
