package figures

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
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

// entry is one sample with its name.
type entry struct {
	name   string
	look   look
	hollow bool
	kind   sample
}

// sample is the kind of sample before a name in the legend.
type sample int

const (
	lineSample sample = iota
	bareSample        // a line without a marker
	boxSample
	markerSample
)

// looksOf assigns each line name a look, the same in all charts, and returns the legend's entries:
// the names, and hollow markers if there are any.
func looksOf(f *doc.Figure) (looks map[string]look, legend []entry) {
	looks = map[string]look{}
	var given []look
	unstable, rejects := false, false
	for _, c := range f.Charts {
		for i := range c.Lines {
			l := &c.Lines[i]
			if _, known := looks[l.Name]; !known {
				own := lookOf(l, given)
				looks[l.Name], given = own, append(given, own)
				if l.Name != "" {
					legend = append(legend, entry{l.Name, own, l.Dots, sampleOf(l)})
				}
			}
			for _, p := range l.Points {
				unstable, rejects = unstable || p.Unstable, rejects || p.Rejects
			}
		}
	}
	note := entry{"unstable queue", look{color: color.Gray{0x70}, marker: circle}, true, markerSample}
	switch {
	case unstable && rejects:
		note.name += ", or requests rejected"
	case rejects:
		note.name = "requests rejected"
	case !unstable:
		return looks, legend
	}
	return looks, append(legend, note)
}

func sampleOf(l *doc.Line) sample {
	switch {
	case l.Bare:
		return bareSample
	case l.Dots:
		return markerSample
	}
	return lineSample
}

// legendStyle is the text style of the names.
func legendStyle() text.Style {
	return text.Style{Color: color.Black, Font: sans(legendSize), YAlign: text.YCenter,
		Handler: plot.DefaultTextHandler}
}

// legendRows distributes entries over as few rows as fit, with about equal widths.
func legendRows(entries []entry, room vg.Length) [][]entry {
	if len(entries) == 0 {
		return nil
	}
	style := legendStyle()
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
	switch e.kind {
	case boxSample:
		drawBox(c, e.look.color, x, x+size, y-5, y+5)
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
