package figures

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	legendSize  = 12.5 // points
	sampleWidth = 30
	sampleGap   = 5  // between sample and name
	entryGap    = 16 // between entries
)

// entry is one line sample and its name.
type entry struct {
	name   string
	look   look
	hollow bool
	line   bool
}

// drawLegend draws one row of all systems, centred in c. Hollow markers are
// explained when there are any.
func drawLegend(c draw.Canvas, ps []panel, looks map[string]look) {
	var entries []entry
	for _, s := range systemsOf(ps) {
		entries = append(entries, entry{label(s), looks[s], false, true})
	}
	if anyUnstable(ps) {
		note := look{color: color.Gray{0x70}, marker: circle}
		entries = append(entries, entry{"unstable queue", note, true, false})
	}

	style := text.Style{
		Color:   color.Black,
		Font:    sans(legendSize),
		YAlign:  text.YCenter,
		Handler: plot.DefaultTextHandler,
	}
	// More entries than fit share the row by smaller print.
	width := legendWidth(entries, style)
	scale := vg.Length(1)
	if room := c.Max.X - c.Min.X; width > room {
		scale = room / width
		style.Font.Size *= scale
	}

	x := c.Center().X - scale*width/2
	y := c.Center().Y
	for _, e := range entries {
		sample := e.sampleWidth() * scale
		if e.line {
			c.StrokeLine2(draw.LineStyle{Color: e.look.color, Width: e.look.width, Dashes: e.look.dashes}, x, y, x+sample, y)
		}
		drawMarker(&c, e.look, vg.Point{X: x + sample/2, Y: y}, e.hollow)
		x += sample + sampleGap*scale
		c.FillText(style, vg.Point{X: x, Y: y + 0.5}, e.name)
		x += style.Width(e.name) + entryGap*scale
	}
}

func (e entry) sampleWidth() vg.Length {
	if e.line {
		return sampleWidth
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

func anyUnstable(ps []panel) bool {
	for _, p := range ps {
		for _, c := range p.curves {
			for _, q := range c.points {
				if q.unstable {
					return true
				}
			}
		}
	}
	return false
}
