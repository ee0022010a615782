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
	return p.width, height
}

func (p *rowPanel) draw(c draw.Canvas) {
	x := func(v float64) vg.Length {
		return c.Min.X + p.left + vg.Length((v-p.low)/(p.high-p.low))*rowWidth
	}
	style := rowStyle()
	top, bottom := c.Max.Y, c.Min.Y+rowFoot
	if p.title != "" {
		title := style
		fit(&title, p.width, p.title)
		c.FillText(title, vg.Point{X: c.Min.X, Y: top - rowHead/2}, p.title)
		top -= rowHead
	}
	tick := style
	tick.XAlign = text.XCenter
	for _, one := range linearTicks(p.low, p.high) {
		if one.Value < 0 || one.Value > p.most {
			continue // beyond are texts alone
		}
		at := x(one.Value)
		c.StrokeLine2(draw.LineStyle{Color: color.Gray{0xdd}, Width: 0.6}, at, bottom, at, top)
		c.FillText(tick, vg.Point{X: at, Y: bottom - 9}, one.Label)
	}
	for _, level := range p.levels {
		c.StrokeLine2(draw.LineStyle{Color: color.Gray{0x50}, Width: 0.9,
			Dashes: []vg.Length{4, 3}}, x(level), bottom, x(level), top)
	}
	c.FillText(tick, vg.Point{X: c.Min.X + p.left + rowWidth/2, Y: bottom - 26}, p.label)
	y := top
	for _, g := range p.groups {
		size := rowBar * vg.Length(len(g.rows))
		y -= rowGap / 2
		name := style
		fit(&name, p.left-14, g.name)
		c.FillText(name, vg.Point{X: c.Min.X, Y: y - size/2}, g.name)
		for i := range g.rows {
			p.bar(&c, &g.rows[i], x, y-rowBar*(vg.Length(i)+0.5))
		}
		y -= size + rowGap/2
	}
	c.StrokeLine2(draw.LineStyle{Color: color.Gray{0x40}, Width: 1}, x(p.base), bottom, x(p.base), top)
}

// bar draws a bar around a height, its interval, and its note beyond both.
func (p *rowPanel) bar(c *draw.Canvas, b *lyingBar, x func(float64) vg.Length, middle vg.Length) {
	sum := p.base
	for _, part := range b.parts {
		from, to := x(sum), x(sum+part.value)
		sum += part.value
		box := vg.Rectangle{Min: vg.Point{X: min(from, to), Y: middle - rowBar/2 + 1.5},
			Max: vg.Point{X: max(from, to), Y: middle + rowBar/2 - 1.5}}
		if box.Max.X-box.Min.X < thinnest {
			continue
		}
		corners := []vg.Point{box.Min, {X: box.Max.X, Y: box.Min.Y}, box.Max,
			{X: box.Min.X, Y: box.Max.Y}}
		c.FillPolygon(part.look.fill(), corners)
		part.look.hatch(c, box)
		c.StrokeLines(draw.LineStyle{Color: color.Black, Width: 0.6}, append(corners, corners[0]))
	}
	if b.high > b.low {
		line := draw.LineStyle{Color: color.Gray{0x30}, Width: 0.9}
		c.StrokeLine2(line, x(b.low), middle, x(b.high), middle)
		for _, end := range []vg.Length{x(b.low), x(b.high)} {
			c.StrokeLine2(line, end, middle-2.5, end, middle+2.5)
		}
	}
	style := rowStyle()
	style.Font.Size = rowNote
	at := max(x(sum), x(b.high)) + 4
	if sum < p.base {
		style.XAlign, at = text.XRight, min(x(sum), x(b.low))-4
	}
	from, to := at-1, at+style.Width(b.note)
	if style.XAlign == text.XRight {
		from, to = at-style.Width(b.note), at+1
	}
	c.FillPolygon(color.White, []vg.Point{{X: from, Y: middle - 5}, {X: to, Y: middle - 5},
		{X: to, Y: middle + 6}, {X: from, Y: middle + 6}}) // lines end at it
	c.FillText(style, vg.Point{X: at, Y: middle}, b.note)
}
