package figures

import (
	"image/color"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
)

func (p *rowPanel) size() (width, height vg.Length) {
	height = rowFoot
	if p.title != "" {
		height += rowHead
	}
	for _, bars := range p.groups() {
		height += rowBar*vg.Length(len(bars)) + rowGap
	}
	return p.left() + p.width, height
}

// left returns the width of names.
func (p *rowPanel) left() vg.Length { return p.group + p.name }

func (p *rowPanel) draw(c draw.Canvas) {
	x := func(v float64) vg.Length {
		return c.Min.X + p.left() + vg.Length((v-p.low)/(p.high-p.low))*p.width
	}
	style := rowStyle()
	_, height := p.size()
	top, bottom := c.Max.Y, c.Max.Y-height+rowFoot
	if p.title != "" {
		title := style
		fit(&title, p.left()+p.width, p.title)
		c.FillText(title, vg.Point{X: c.Min.X, Y: top - rowHead/2}, p.title)
		top -= rowHead
	}
	tick := style
	tick.XAlign = text.XCenter
	end := c.Min.X // of the previous label
	for _, one := range linearTicks(p.low, p.high) {
		if one.Value < 0 || one.Value > p.most {
			continue // only texts are beyond
		}
		at := x(one.Value)
		c.StrokeLine2(draw.LineStyle{Color: color.Gray{0xdd}, Width: 0.6}, at, bottom, at, top)
		if half := tick.Width(one.Label) / 2; at-half > end {
			c.FillText(tick, vg.Point{X: at, Y: bottom - 9}, one.Label)
			end = at + half + 4
		}
	}
	for _, level := range p.levels {
		c.StrokeLine2(draw.LineStyle{Color: color.Gray{0x50}, Width: 0.9,
			Dashes: []vg.Length{4, 3}}, x(level), bottom, x(level), top)
	}
	c.FillText(tick, vg.Point{X: c.Min.X + p.left() + p.width/2, Y: bottom - 26}, p.label)
	y := top
	for _, bars := range p.groups() {
		size := rowBar * vg.Length(len(bars))
		y -= rowGap / 2
		writeName(&c, bars[0].Group, c.Min.X, y-size/2, p.group)
		for i := range bars {
			middle := y - rowBar*(vg.Length(i)+0.5)
			writeName(&c, bars[i].Name, c.Min.X+p.group, middle, p.name)
			p.bar(&c, &bars[i], x, middle)
		}
		y -= size + rowGap/2
	}
	c.StrokeLine2(draw.LineStyle{Color: color.Gray{0x40}, Width: 1}, x(p.base), bottom, x(p.base), top)
}

// writeName writes a name into a width, with a smaller font if it is longer.
func writeName(c *draw.Canvas, name string, x, y, width vg.Length) {
	style := rowStyle()
	fit(&style, width-nameGap, name)
	c.FillText(style, vg.Point{X: x, Y: y}, name)
}

// thinnest is the least length at which a part is drawn.
const thinnest = 0.5 // points

// bar draws a bar at a height, its interval, and its note beyond both.
func (p *rowPanel) bar(c *draw.Canvas, b *doc.Bar, x func(float64) vg.Length, middle vg.Length) {
	sum := p.base
	for _, part := range b.Parts {
		from, to := x(min(sum, p.cut)), x(min(sum+part.Value, p.cut))
		sum += part.Value
		if left, right := min(from, to), max(from, to); right-left >= thinnest {
			drawBox(c, colorOf(part.Color), left, right, middle-rowBar/2+1.5, middle+rowBar/2-1.5)
		}
	}
	interval := intervalOf(b)
	if interval.Shown() {
		line, low, high := draw.LineStyle{Color: color.Gray{0x30}, Width: 0.9}, x(*interval.Low),
			x(*interval.High)
		c.StrokeLine2(line, low, middle, high, middle)
		c.StrokeLine2(line, low, middle-2.5, low, middle+2.5)
		c.StrokeLine2(line, high, middle-2.5, high, middle+2.5)
	}
	for _, v := range interval.Runs {
		drawDot(c, color.White, vg.Point{X: x(v), Y: middle}, runRadius+1)
		drawDot(c, color.Black, vg.Point{X: x(v), Y: middle}, runRadius)
	}
	if b.Published != nil {
		drawMarker(c, ofPaper, vg.Point{X: x(*b.Published), Y: middle}, markerRadius, true)
	}
	style := rowStyle()
	style.Font.Size = rowNote
	low, high := p.furthest(b)
	at := x(high) + 5
	if b.Published != nil {
		at += markerRadius
	}
	if sum < p.base {
		style.XAlign, at = text.XRight, x(low)-5
	}
	from, to := at-1, at+style.Width(p.noteOf(b))
	if style.XAlign == text.XRight {
		from, to = at-style.Width(p.noteOf(b)), at+1
	}
	c.FillPolygon(color.White, []vg.Point{{X: from, Y: middle - 5}, {X: to, Y: middle - 5},
		{X: to, Y: middle + 6}, {X: from, Y: middle + 6}}) // lines end at it
	c.FillText(style, vg.Point{X: at, Y: middle}, p.noteOf(b))
}

// drawBox draws a filled rectangle with a border.
func drawBox(c *draw.Canvas, ink color.Color, left, right, bottom, top vg.Length) {
	corners := []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top},
		{X: left, Y: top}}
	c.FillPolygon(ink, corners)
	c.StrokeLines(draw.LineStyle{Color: color.Black, Width: 0.6}, append(corners, corners[0]))
}
