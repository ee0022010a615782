package figures

import (
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// Sizes of a picture. A line chart with its legend is 6.4 x 4.2 inches, 1408 x 924 pixels, or wide
// and low. A picture of several charts is at most as wide as a page, 2400 pixels; the charts are
// arranged in rows.
const (
	panelWidth  = 6.4 * vg.Inch
	panelHeight = 4.2*vg.Inch - legendHeight
	lowHeight   = 0.6 * panelHeight
	lowWidth    = 1.7 * panelWidth
	pageWidth   = 2400 * vg.Inch / dotsPerInch
	margin      = 8 // points, around everything
	captionSize = 10.5
	captionLine = 14 // points
)

// sheet is a laid-out picture. Sizes are in points.
type sheet struct {
	width, height vg.Length
	dots          int // per inch, for a PNG
	legend        [][]entry
	caption       []string // lines
	content       func(draw.Canvas)
}

// block is a chart that can be stacked with others.
type block interface {
	size() (width, height vg.Length)
	draw(c draw.Canvas)
}

// isLines reports whether a chart is a line chart.
func isLines(c *doc.Chart) bool { return c.Kind == doc.Lines || c.Kind == "" }

// layout arranges charts under one legend and above the caption.
func layout(f *doc.Figure) *sheet {
	var s *sheet
	var legend []entry
	var blocks []block
	switch kind := f.Charts[0].Kind; {
	case slices.ContainsFunc(f.Charts, isLines):
		s, legend = tiled(f)
	case kind == doc.HeatMap:
		blocks, legend = heatsOf(f.Charts)
		s = stacked(blocks)
	default:
		blocks, legend = rowsOf(f.Charts)
		s = stacked(blocks)
	}
	s.legend = legendRows(legend, s.width)
	s.caption = wrap(f.Caption, captionStyle(), s.width)
	s.width += 2 * margin
	s.height += 2*margin + legendOf(s.legend) + captionLine*vg.Length(len(s.caption))
	return s
}

// paint draws legend, content and caption.
func (s *sheet) paint(canvas draw.Canvas) {
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Rectangle.Path())
	c := draw.Crop(canvas, margin, -margin, margin, -margin)
	drawLegend(c, s.legend)
	drawCaption(c, s.caption)
	s.content(draw.Crop(c, 0, 0, captionLine*vg.Length(len(s.caption)), -legendOf(s.legend)))
}

// stacked arranges blocks below each other.
func stacked(blocks []block) *sheet {
	s := &sheet{dots: tableDots}
	for _, b := range blocks {
		w, h := b.size()
		s.width, s.height = max(s.width, w), s.height+h
	}
	s.content = func(c draw.Canvas) {
		top := c.Max.Y
		for _, b := range blocks {
			_, h := b.size()
			b.draw(draw.Crop(c, 0, 0, top-h-c.Min.Y, top-c.Max.Y))
			top -= h
		}
	}
	return s
}

// tiled arranges line charts, and bars between them, in one or two columns.
func tiled(f *doc.Figure) (*sheet, []entry) {
	s := &sheet{dots: dotsPerInch, width: panelWidth - 2*margin}
	columns, height := 1, vg.Length(panelHeight)
	switch {
	case f.Charts[0].Low:
		s.width, height = lowWidth-2*margin, lowHeight
	case len(f.Charts) > 1:
		s.width, columns = pageWidth-2*margin, 2
	}
	tile := (s.width+2*margin)/vg.Length(columns) - 2*margin
	looks, legend := looksOf(f)
	bars, more := rowsOf(slices.DeleteFunc(slices.Clone(f.Charts), isLines))
	for _, b := range bars {
		b.(*rowPanel).narrow(tile)
		_, h := b.size()
		height = max(height, h)
	}
	legend = append(legend, slices.DeleteFunc(more, func(e entry) bool {
		return slices.ContainsFunc(legend, func(o entry) bool { return o.name == e.name })
	})...)
	rows := (len(f.Charts) + columns - 1) / columns
	s.height = height * vg.Length(rows)
	s.content = func(c draw.Canvas) {
		tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: 2 * margin, PadY: 2 * margin}
		plots := make([][]*plot.Plot, rows)
		for i := range rows * columns {
			if i%columns == 0 {
				plots[i/columns] = make([]*plot.Plot, columns)
			}
			if i < len(f.Charts) && isLines(f.Charts[i]) {
				plt := newPlot(f.Charts[i], looks)
				fit(&plt.Title.TextStyle, tile, f.Charts[i].Title)
				plots[i/columns][i%columns] = plt
			}
		}
		aligned, left := plot.Align(plots, tiles, c), bars
		for i, one := range f.Charts {
			at := aligned[i/columns][i%columns]
			if isLines(one) {
				plots[i/columns][i%columns].Draw(at)
				continue
			}
			left[0].(*rowPanel).narrow(at.Max.X - at.Min.X)
			left[0].draw(at)
			left = left[1:]
		}
	}
	return s, legend
}

// fit reduces a font until all lines fit the room.
func fit(style *text.Style, room vg.Length, lines ...string) {
	for _, line := range lines {
		if width := style.Width(line); width > room {
			style.Font.Size *= room / width
		}
	}
}

func captionStyle() text.Style {
	return text.Style{Color: color.Gray{0x50}, Font: sans(captionSize), YAlign: text.YBottom,
		Handler: plot.DefaultTextHandler}
}

// drawCaption writes the caption's lines at the bottom.
func drawCaption(c draw.Canvas, lines []string) {
	for i, line := range lines {
		c.FillText(captionStyle(),
			vg.Point{X: c.Min.X, Y: c.Min.Y + captionLine*vg.Length(len(lines)-1-i)}, line)
	}
}

// wrap breaks words into lines of at most the given width.
func wrap(words string, style text.Style, width vg.Length) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(words) {
		longer := strings.TrimSpace(line + " " + word)
		if line != "" && style.Width(longer) > width {
			lines, longer = append(lines, line), word
		}
		line = longer
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
