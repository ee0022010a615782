package figures

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// barShare is the part of a group's width that its bars take.
const barShare = 0.8

// thinnest is the height of a part that is drawn.
const thinnest = 0.5 // points

// addBars puts group i of a chart at x = i.
func addBars(plt *plot.Plot, c *chart, looks map[string]look) {
	plt.X.Min, plt.X.Max = -0.5, float64(len(c.groups))-0.5
	ticks := make(plot.ConstantTicks, len(c.groups))
	for i, g := range c.groups {
		ticks[i] = plot.Tick{Value: float64(i), Label: g.label}
	}
	plt.X.Tick.Marker = ticks
	plt.X.Tick.LineStyle.Color = color.Transparent // yet its length keeps labels off the axis
	plt.Add(barPlotter{c, looks})
}

// barPlotter draws groups of bars.
type barPlotter struct {
	*chart
	looks map[string]look
}

func (d barPlotter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	edges := func(i, j int) (left, right vg.Length) {
		width := barShare / float64(len(d.groups[i].bars))
		from := float64(i) - barShare/2 + float64(j)*width
		left, right = x(from), x(from+width)
		inset := 0.04 * (right - left)
		return left + inset, right - inset
	}
	upright := false // all notes, where those of neighbours would meet
	end := vg.Length(math.Inf(-1))
	for i, g := range d.groups {
		for j := range g.bars {
			left, right := edges(i, j)
			half := noteStyle().Width(g.bars[j].note) / 2
			begin := (left+right)/2 - half
			upright = upright || half > 0 && begin < end+noteSpace
			end = max(end, begin+2*half)
		}
	}
	for i, g := range d.groups {
		for j := range g.bars {
			left, right := edges(i, j)
			d.bar(&c, &g.bars[j], left, right, y, upright)
		}
	}
}

func (d barPlotter) bar(c *draw.Canvas, b *bar, left, right vg.Length, y func(float64) vg.Length,
	upright bool) {
	sum := 0.0
	for _, p := range b.parts {
		look := d.looks[p.series]
		low, high := min(y(sum), c.Max.Y), min(y(sum+p.mean), c.Max.Y)
		if sum += p.mean; high-low < thinnest {
			continue // two outlines would be one black line
		}
		box := []vg.Point{{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high}}
		c.FillPolygon(look.fill(), box)
		look.hatch(c, vg.Rectangle{Min: box[0], Max: box[2]})
		c.StrokeLines(draw.LineStyle{Color: color.Black, Width: 0.7}, append(box, box[0]))
	}
	h, note := b.height(), b.note
	top := y(h.mean)
	switch {
	case top > c.Max.Y:
		noteInside(c, note+" "+leftLabel(h.mean), (left+right)/2)
		return
	case b.whiskered() && h.values != nil:
		drawRuns(c, color.Black, (left+right)/2, h, d.axis, y)
		top = max(top, y(min(slices.Max(h.values), d.axis.high)))
	case b.whiskered():
		top = drawWhisker(c, color.Black, (left+right)/2, h,
			axis{d.axis.low, 0.93 * d.axis.high, false}, y)
	}
	style := noteStyle()
	at := vg.Point{X: (left + right) / 2, Y: top + 3}
	if upright {
		style.Rotation, style.XAlign, style.YAlign = math.Pi/2, text.XLeft, text.YCenter
		at.X += style.FontExtents().Descent
		if at.Y+noteStyle().Width(note) > c.Max.Y {
			noteInside(c, note, (left+right)/2)
			return
		}
	}
	c.FillText(style, at, note)
}

// whiskered says whether a bar has an interval over it.
func (b *bar) whiskered() bool {
	h := b.height()
	return h.high > h.low && (len(b.parts) == 1 || b.total != nil)
}

// noteInside writes upright at x, on white, from the panel's upper edge down: the bar, or a note
// above it, runs out of the panel, and the title or legend is above.
func noteInside(c *draw.Canvas, note string, x vg.Length) {
	style := noteStyle()
	style.Rotation, style.XAlign, style.YAlign = math.Pi/2, text.XRight, text.YCenter
	top, bottom := c.Max.Y-2, c.Max.Y-8-style.Width(note)
	half := 0.6 * style.FontExtents().Ascent
	c.FillPolygon(color.White, []vg.Point{{X: x - half, Y: bottom}, {X: x + half, Y: bottom},
		{X: x + half, Y: top}, {X: x - half, Y: top}})
	// digits and capitals have no descent
	c.FillText(style, vg.Point{X: x - 0.6*style.FontExtents().Descent, Y: top - 3}, note)
}

// noteSpace is the least distance of two notes, in points.
const noteSpace = 3

// noteStyle is that of the text above a bar.
func noteStyle() text.Style {
	return text.Style{Color: color.Black, Font: sans(11), XAlign: text.XCenter,
		Handler: plot.DefaultTextHandler}
}

// hatch draws diagonal lines within r, so that neighbours differ in grey too.
func (l look) hatch(c *draw.Canvas, r vg.Rectangle) {
	if l.hatching == 0 {
		return
	}
	style := draw.LineStyle{Color: color.Black, Width: 0.6}
	height := r.Max.Y - r.Min.Y
	for x := r.Min.X - height; x < r.Max.X; x += l.hatching {
		// From (x, Min.Y) up to the right at 45 degrees, cut to r.
		from, to := max(x, r.Min.X), min(x+height, r.Max.X)
		if from < to {
			c.StrokeLine2(style, from, r.Min.Y+from-x, to, r.Min.Y+to-x)
		}
	}
}
