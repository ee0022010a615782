package figures

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// Sizes of bars in points.
const (
	barSize   = 15 // of a bar with the space around it
	barGap    = 9  // between groups
	barsWidth = 560
	barNote   = 11  // text at the end of a bar
	nameMost  = 420 // most width of names; longer ones use a smaller font
)

// barPanel is a chart of horizontal bars from 0. y of the plot is in points.
type barPanel struct {
	*doc.Chart
	y         []float64 // of the middle of each bar
	height    float64
	low, high float64   // of all bars, intervals and levels
	cut       float64   // where longer bars end
	width     vg.Length // of the panel, with names
}

// ofPaper is the look of a value of a paper.
var ofPaper = look{color: color.Gray{0x50}, marker: diamond}

// newBars returns the panel of a chart of bars.
func newBars(c *doc.Chart) *barPanel {
	p := &barPanel{Chart: c, cut: math.Inf(1)}
	if doc.Fit(c); len(c.YEnds) == 2 {
		p.cut = c.YEnds[1]
	}
	p.high = slices.Max(append(c.Levels, 0))
	for i := range p.Bars {
		if i == 0 || p.Bars[i].Group == "" || p.Bars[i].Group != p.Bars[i-1].Group {
			p.height += barGap
		}
		p.y = append(p.y, -p.height-barSize/2)
		p.height += barSize
		low, high := p.furthest(&p.Bars[i])
		p.low, p.high = min(p.low, low), max(p.high, high)
	}
	return p
}

// plot sets up the chart: names at the left, notes at the ends of bars.
func (p *barPanel) plot(width vg.Length) *plot.Plot {
	label := p.Y
	if p.X != "" { // the quantity of the groups
		label += ", by " + p.X
	}
	pad := 0.04 * (p.high - p.low)
	low, high := p.low, p.high+pad
	if low < 0 {
		low -= pad
	}
	if high <= low { // all values are 0
		high = 1
	}
	p.width = width
	plt := framed(p.Title, label, "")
	plt.X.Min, plt.X.Max, plt.Y.Min, plt.Y.Max = low, high, -p.height-barGap/2, -barGap/2
	plt.X.Tick.Marker = plot.TickerFunc(linearTicks)
	named(&plt.Y, p.names(), min(nameMost, 0.5*width))
	lines := grid()
	lines.Vertical, lines.Horizontal = lines.Horizontal, lines.Vertical
	plt.Add(lines, p)
	return plt
}

// names returns the names beside the bars. The group is before its first bar, or beside the middle
// of bars without names.
func (p *barPanel) names() (ticks []plot.Tick) {
	for i := 0; i < len(p.Bars); {
		group, end := p.Bars[i].Group, i+1
		for end < len(p.Bars) && group != "" && p.Bars[end].Group == group {
			end++
		}
		if p.Bars[i].Name == "" {
			ticks = append(ticks, plot.Tick{Value: (p.y[i] + p.y[end-1]) / 2, Label: group})
			i = end
		}
		for ; i < end; i++ {
			ticks = append(ticks, plot.Tick{Value: p.y[i],
				Label: strings.TrimSpace(group + "    " + p.Bars[i].Name)})
			group = ""
		}
	}
	return ticks
}

// intervalOf returns the runs and the interval that are shown for a bar.
func intervalOf(b *doc.Bar) *doc.Sample {
	if len(b.Parts) == 1 && b.Sample.Low == nil {
		return &b.Parts[0].Sample
	}
	return &b.Sample
}

// furthest returns the range of everything drawn for a bar, without its note.
func (p *barPanel) furthest(b *doc.Bar) (low, high float64) {
	s := intervalOf(b)
	all := append([]float64{b.Value()}, s.Runs...)
	if s.Shown() {
		all = append(all, *s.Low, *s.High)
	}
	if b.Published != nil {
		all = append(all, *b.Published)
	}
	return slices.Min(all), min(p.cut, slices.Max(all))
}

// noteOf returns the note at the end of a bar.
func (p *barPanel) noteOf(b *doc.Bar) string {
	note := cmp.Or(b.Note, stats.Digits(b.Value()))
	if b.Value() > p.cut {
		note += " (cut)"
	}
	return note
}

// note returns the style of a bar's note, its distance from the bar's end, and its width. It is
// right-aligned before a negative bar.
func (p *barPanel) note(b *doc.Bar) (style text.Style, aside, width vg.Length) {
	style = sided(barNote)
	fit(&style, 0.3*p.width, p.noteOf(b))
	if aside = 5; b.Published != nil {
		aside += markerRadius
	}
	if b.Value() < 0 {
		style.XAlign, aside = text.XRight, -aside
	}
	return style, aside, style.Width(p.noteOf(b))
}

// GlyphBoxes makes room for the notes.
func (p *barPanel) GlyphBoxes(plt *plot.Plot) (boxes []plot.GlyphBox) {
	for i := range p.Bars {
		b := &p.Bars[i]
		_, aside, width := p.note(b)
		low, high := p.furthest(b)
		x, from, to := high, vg.Length(0), aside+width
		if aside < 0 {
			x, from, to = low, aside-width, 0
		}
		boxes = append(boxes, plot.GlyphBox{X: plt.X.Norm(x), Y: plt.Y.Norm(p.y[i]),
			Rectangle: vg.Rectangle{Min: vg.Point{X: from}, Max: vg.Point{X: to}}})
	}
	return boxes
}

// Plot implements plot.Plotter.
func (p *barPanel) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	for _, level := range p.Levels {
		c.StrokeLine2(levelStyle, x(level), c.Min.Y, x(level), c.Max.Y)
	}
	for i := range p.Bars {
		p.bar(&c, &p.Bars[i], x, y(p.y[i]), min(thickest, 0.8*(y(barSize)-y(0)))/2)
	}
	c.StrokeLine2(draw.LineStyle{Color: color.Gray{0x40}, Width: 1}, x(0), c.Min.Y, x(0), c.Max.Y)
}

// thinnest is the least length at which a part is drawn. A bar is at most thickest.
const thinnest, thickest = 0.5, 24 // points

// boxes returns the ends of the parts of a bar. The parts of a cut bar share the drawn length.
func (p *barPanel) boxes(b *doc.Bar) (ends [][2]float64) {
	sum, scale := 0.0, 1.0
	if all := b.Value(); all > p.cut {
		scale = p.cut / all
	}
	for _, part := range b.Parts {
		ends = append(ends, [2]float64{scale * sum, scale * (sum + part.Value)})
		sum += part.Value
	}
	return ends
}

// bar draws a bar around a height, its interval, and its note beyond both.
func (p *barPanel) bar(c *draw.Canvas, b *doc.Bar, x func(float64) vg.Length,
	middle, half vg.Length) {
	for i, ends := range p.boxes(b) {
		from, to := x(ends[0]), x(ends[1])
		if box := around(vg.Point{X: (from + to) / 2, Y: middle}, vg.Length(math.Abs(float64(to-from)))/2,
			half); box.Size().X >= thinnest {
			drawBox(c, colorOf(b.Parts[i].Color), box)
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
	style, aside, width := p.note(b)
	low, high := p.furthest(b)
	at := vg.Point{X: x(high) + aside, Y: middle + 1.5} // digits reach higher than letters lower
	box := around(at.Add(vg.Point{X: width / 2}), width/2, 6)
	if aside < 0 {
		at.X = x(low) + aside
		box = around(at.Add(vg.Point{X: -width / 2}), width/2, 6)
	}
	c.SetColor(color.White) // lines end at the note
	c.Fill(box.Path())
	c.FillText(style, at, p.noteOf(b))
}

// drawBox draws a filled rectangle with a border.
func drawBox(c *draw.Canvas, ink color.Color, box vg.Rectangle) {
	c.SetColor(ink)
	c.Fill(box.Path())
	c.SetColor(color.Black)
	c.SetLineStyle(draw.LineStyle{Color: color.Black, Width: 0.6})
	c.Stroke(box.Path())
}
