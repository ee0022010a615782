package figures

import (
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
)

const (
	legendSize   = 12.5 // points
	legendLine   = 18   // height of a row
	legendHeight = 32   // minimum
	sampleWidth  = 30
	boxWidth     = 16
	sampleGap    = 5  // between sample and name
	entryGap     = 16 // between entries
)

// entry is one sample with its name: a line, a marker, both, or else a box.
type entry struct {
	name         string
	look         look
	hollow       bool
	line, marker bool
}

// looksOf assigns each line name a look, the same in all charts, and returns the legend's entries:
// the names, and hollow markers if there are any.
func looksOf(f *doc.Figure) (looks map[string]look, legend []entry) {
	looks = map[string]look{}
	var given []look
	var caveats doc.Caveats
	for _, c := range f.Charts {
		for i := range c.Lines {
			l := &c.Lines[i]
			if _, known := looks[l.Name]; !known {
				own := lookOf(l, given)
				looks[l.Name], given = own, append(given, own)
				if l.Name != "" {
					legend = append(legend, entry{l.Name, own, l.Dots, !l.Dots, !l.Bare})
				}
			}
			for _, p := range l.Points {
				caveats.Add(p.Caveats)
			}
		}
	}
	if doubts := caveats.Doubts(); len(doubts) > 0 {
		legend = append(legend, entry{strings.Join(doubts, " or "),
			look{color: color.Gray{0x70}, marker: circle}, true, false, true})
	}
	return looks, legend
}

// withParts adds the parts that bars draw to a legend, except parts named like their bar.
func withParts(legend []entry, bars []doc.Bar) []entry {
	add := func(e entry) {
		if !slices.ContainsFunc(legend, func(o entry) bool { return o.name == e.name }) {
			legend = append(legend, e)
		}
	}
	drawn := map[string]bool{}
	for i := range bars {
		for _, part := range bars[i].Parts {
			drawn[part.Name] = drawn[part.Name] || part.Value != 0 && part.Name != bars[i].Name
		}
	}
	for i := range bars {
		b := &bars[i]
		for _, part := range b.Parts {
			if drawn[part.Name] {
				add(entry{name: part.Name, look: look{color: colorOf(part.Color)}})
			}
		}
		if b.Published != nil {
			add(entry{doc.Published, ofPaper, true, false, true})
		}
	}
	return legend
}

// legendRows distributes entries over as few rows as fit, with about equal widths.
func legendRows(entries []entry, room vg.Length) [][]entry {
	if len(entries) == 0 {
		return nil
	}
	style := sided(legendSize)
	for n := 1; ; n++ {
		per := (len(entries) + n - 1) / n
		fits := true
		rows := slices.Collect(slices.Chunk(entries, per))
		for _, row := range rows {
			fits = fits && legendWidth(row, style) <= room
		}
		if fits || per == 1 {
			return rows
		}
	}
}

// legendOf returns the height of a legend; 0 without one.
func legendOf(rows [][]entry) vg.Length {
	if len(rows) == 0 {
		return 0
	}
	return max(legendHeight, legendLine*vg.Length(len(rows))+6)
}

// drawLegend draws the rows centred at the top of c. Rows wider than c use a smaller font.
func drawLegend(c draw.Canvas, rows [][]entry) {
	if len(rows) == 0 {
		return
	}
	style := sided(legendSize)
	scale := vg.Length(1)
	for _, row := range rows {
		scale = min(scale, (c.Max.X-c.Min.X)/legendWidth(row, style))
	}
	line := (legendOf(rows) - 6) / vg.Length(len(rows))
	for i, row := range rows {
		drawRow(&c, row, style, scale, c.Max.Y-line*(vg.Length(i)+0.5))
	}
}

// drawRow draws entries side by side.
func drawRow(c *draw.Canvas, entries []entry, style text.Style, scale, y vg.Length) {
	x := c.Center().X - scale*legendWidth(entries, style)/2
	style.Font.Size *= scale
	for _, e := range entries {
		size := e.sampleWidth() * scale
		e.draw(c, x, y, size)
		x += size + sampleGap*scale
		c.FillText(style, vg.Point{X: x, Y: y + 0.5}, e.name)
		x += style.Width(e.name) + entryGap*scale
	}
}

func (e entry) draw(c *draw.Canvas, x, y, size vg.Length) {
	middle := vg.Point{X: x + size/2, Y: y}
	if e.line {
		c.StrokeLine2(draw.LineStyle{Color: e.look.color, Width: e.look.width, Dashes: e.look.dashes}, x,
			y, x+size, y)
	}
	if e.marker {
		drawMarker(c, e.look, middle, markerRadius, e.hollow)
	}
	if !e.line && !e.marker {
		drawBox(c, e.look.color, around(middle, size/2, 5))
	}
}

func (e entry) sampleWidth() vg.Length {
	switch {
	case e.line:
		return sampleWidth
	case e.marker:
		return 2 * markerRadius
	}
	return boxWidth
}

func legendWidth(entries []entry, style text.Style) vg.Length {
	width := vg.Length(-entryGap)
	for _, e := range entries {
		width += e.sampleWidth() + sampleGap + style.Width(e.name) + entryGap
	}
	return width
}

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

// Shapes have about equal areas.

func circle(r vg.Length) []vg.Point   { return polygon(32, r, 0) }
func square(r vg.Length) []vg.Point   { return polygon(4, 1.22*r, math.Pi/4) }
func diamond(r vg.Length) []vg.Point  { return polygon(4, 1.3*r, 0) }
func triangle(r vg.Length) []vg.Point { return polygon(3, 1.4*r, math.Pi/2) }
func down(r vg.Length) []vg.Point     { return polygon(3, 1.4*r, -math.Pi/2) }

// polygon returns the corners of a regular polygon, starting at the angle.
func polygon(corners int, r vg.Length, angle float64) []vg.Point {
	out := make([]vg.Point, corners)
	for i := range out {
		a := angle + 2*math.Pi*float64(i)/float64(corners)
		out[i] = vg.Point{X: r * vg.Length(math.Cos(a)), Y: r * vg.Length(math.Sin(a))}
	}
	return out
}
