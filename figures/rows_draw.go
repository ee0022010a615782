package figures

import (
	"image/color"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func (p *rowPanel) size() (width, height vg.Length) {
	height = rowFoot
	if p.title != "" {
		height += rowHead
	}
	for _, g := range p.groups {
		height += rowBar*vg.Length(len(g.rows)) + rowGap
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
	for _, g := range p.groups {
		size := rowBar * vg.Length(len(g.rows))
		y -= rowGap / 2
		writeName(&c, g.name, c.Min.X, y-size/2, p.group)
		for i := range g.rows {
			middle := y - rowBar*(vg.Length(i)+0.5)
			writeName(&c, g.rows[i].name, c.Min.X+p.group, middle, p.name)
			p.bar(&c, &g.rows[i], x, middle)
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
func (p *rowPanel) bar(c *draw.Canvas, b *lyingBar, x func(float64) vg.Length, middle vg.Length) {
	sum := p.base
	for _, part := range b.parts {
		from, to := x(sum), x(sum+part.value)
		sum += part.value
		if left, right := min(from, to), max(from, to); right-left >= thinnest {
			drawBox(c, part.color, left, right, middle-rowBar/2+1.5, middle+rowBar/2-1.5)
		}
	}
	if b.high > b.low {
		line := draw.LineStyle{Color: color.Gray{0x30}, Width: 0.9}
		c.StrokeLine2(line, x(b.low), middle, x(b.high), middle)
		for _, end := range []vg.Length{x(b.low), x(b.high)} {
			c.StrokeLine2(line, end, middle-2.5, end, middle+2.5)
		}
	}
	for _, v := range b.runs {
		drawDot(c, color.White, vg.Point{X: x(v), Y: middle}, runRadius+1)
		drawDot(c, color.Black, vg.Point{X: x(v), Y: middle}, runRadius)
	}
	if b.published != nil {
		drawMarker(c, rowLooks[2], vg.Point{X: x(*b.published), Y: middle}, markerRadius, true)
	}
	style := rowStyle()
	style.Font.Size = rowNote
	low, high := b.furthest(p.base)
	at := x(high) + 5
	if b.published != nil {
		at += markerRadius
	}
	if sum < p.base {
		style.XAlign, at = text.XRight, x(low)-5
	}
	from, to := at-1, at+style.Width(b.note)
	if style.XAlign == text.XRight {
		from, to = at-style.Width(b.note), at+1
	}
	c.FillPolygon(color.White, []vg.Point{{X: from, Y: middle - 5}, {X: to, Y: middle - 5},
		{X: to, Y: middle + 6}, {X: from, Y: middle + 6}}) // lines end at it
	c.FillText(style, vg.Point{X: at, Y: middle}, b.note)
}

// drawBox draws a filled rectangle with a border.
func drawBox(c *draw.Canvas, ink color.Color, left, right, bottom, top vg.Length) {
	corners := []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top},
		{X: left, Y: top}}
	c.FillPolygon(ink, corners)
	c.StrokeLines(draw.LineStyle{Color: color.Black, Width: 0.6}, append(corners, corners[0]))
}
