package figures

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	legendSize   = 12.5 // points
	legendLine   = 18   // a row
	legendHeight = 32   // at least
	sampleWidth  = 30
	boxWidth     = 16
	sampleGap    = 5  // between sample and name
	entryGap     = 16 // between entries
)

// entry is one sample and its name.
type entry struct {
	name   string
	look   look
	hollow bool
	kind   sample
}

// sample is what stands before a name in the legend.
type sample int

const (
	lineSample sample = iota
	bareSample        // a line without a marker
	boxSample
	markerSample
	letterSample // a letter above bars
)

// entries lists what the legend explains: every series but parts of bars that are too thin to be
// drawn, and hollow markers when there are any.
func (p *picture) entries(looks map[string]look) []entry {
	const least = float64(thinnest / panelHeight) // of an axis: what is thinner is not drawn
	kinds := map[string]sample{}
	for _, c := range p.charts {
		for _, one := range c.curves {
			switch {
			case kinds[one.series] == boxSample:
			case one.bare:
				kinds[one.series] = bareSample
			case one.dots || one.hollow:
				kinds[one.series] = markerSample
			default:
				kinds[one.series] = lineSample
			}
		}
		for _, g := range c.groups {
			for _, b := range g.bars {
				for _, part := range b.parts {
					if len(b.parts) == 1 || part.mean >= least*(c.axis.high-c.axis.low) {
						kinds[part.series] = boxSample
					}
				}
			}
		}
	}
	var entries []entry
	for _, s := range p.seriesOf() {
		if kind, ok := kinds[s]; ok {
			entries = append(entries, entry{s, looks[s], kind == markerSample, kind})
		}
	}
	if text := p.hollow(); text != "" {
		note := look{color: color.Gray{0x70}, marker: circle}
		entries = append(entries, entry{text, note, true, markerSample})
	}
	for i, name := range p.letters {
		entries = append(entries, entry{string(rune('A'+i)) + ": " + name, look{}, false, letterSample})
	}
	return entries
}

// legendStyle is that of the names.
func legendStyle() text.Style {
	return text.Style{Color: color.Black, Font: sans(legendSize), YAlign: text.YCenter,
		Handler: plot.DefaultTextHandler}
}

// legendRows puts entries into as few rows as fit, about equally wide.
func legendRows(entries []entry, room vg.Length) [][]entry {
	if len(entries) == 0 {
		return nil
	}
	style := legendStyle()
	if i := slices.IndexFunc(entries, func(e entry) bool { return e.kind == letterSample }); i > 0 {
		return append(legendRows(entries[:i], room), legendRows(entries[i:], room)...)
	}
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

// legendOf is the height of a legend.
func legendOf(rows [][]entry) vg.Length {
	return max(legendHeight, legendLine*vg.Length(len(rows))+6)
}

// drawLegend draws the rows at the top of c, centred; what is wider than c is in smaller
// print.
func drawLegend(c draw.Canvas, rows [][]entry) {
	if len(rows) == 0 {
		return
	}
	style := legendStyle()
	scale := vg.Length(1)
	for _, row := range rows {
		scale = min(scale, (c.Max.X-c.Min.X)/legendWidth(row, style))
	}
	line := (legendOf(rows) - 6) / vg.Length(len(rows))
	for i, row := range rows {
		drawRow(&c, row, style, scale, c.Max.Y-line*(vg.Length(i)+0.5))
	}
}

// drawRow draws entries next to each other.
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
	switch e.kind {
	case boxSample:
		box := vg.Rectangle{Min: vg.Point{X: x, Y: y - 5}, Max: vg.Point{X: x + size, Y: y + 5}}
		corners := []vg.Point{box.Min, {X: box.Max.X, Y: box.Min.Y}, box.Max,
			{X: box.Min.X, Y: box.Max.Y}}
		c.FillPolygon(e.look.fill(), corners)
		e.look.hatch(c, box)
		c.StrokeLines(draw.LineStyle{Color: color.Black, Width: 0.7}, append(corners, corners[0]))
	case lineSample, bareSample:
		c.StrokeLine2(draw.LineStyle{Color: e.look.color, Width: e.look.width, Dashes: e.look.dashes}, x,
			y, x+size, y)
	}
	if e.kind == lineSample || e.kind == markerSample {
		drawMarker(c, e.look, vg.Point{X: x + size/2, Y: y}, markerRadius, e.hollow)
	}
}

func (e entry) sampleWidth() vg.Length {
	switch e.kind {
	case lineSample, bareSample:
		return sampleWidth
	case boxSample:
		return boxWidth
	case letterSample:
		return 0
	}
	return 2 * markerRadius
}

func legendWidth(entries []entry, style text.Style) vg.Length {
	width := vg.Length(-entryGap)
	for _, e := range entries {
		width += e.sampleWidth() + sampleGap + style.Width(e.name) + entryGap
	}
	return width
}
