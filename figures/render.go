package figures

import (
	"image/color"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Size of a picture: one panel is 6.4 x 4.2 inches, 1408 x 924 pixels. No picture is
// wider than a page, 2400 pixels: panels that do not fit stand in rows.
const (
	panelWidth  = 6.4 * vg.Inch
	panelHeight = 4.2 * vg.Inch
	pageWidth   = 2400 * vg.Inch / dotsPerInch
	axisWidth   = 48 // points, of the quantity's axis at the left, about
	margin      = 8  // points, around everything
	captionSize = 10.5
	captionLine = 14 // points
)

// write writes the picture, in each format, and its numbers into dir and returns the
// paths of the pictures.
func (p *picture) write(dir string, formats []string) ([]string, error) {
	p.bound()
	page := p.lay()
	path := filepath.Join(dir, p.file)
	files, err := writeFormats(path, formats, dotsPerInch, page.width, page.height, page.paint)
	if err != nil {
		return files, err
	}
	return files, writeFile(path+".csv", p.tabulate())
}

// page is a picture that is laid out.
type page struct {
	*picture
	columns       int
	width, height vg.Length
	looks         map[string]look
	legend        [][]entry
	caption       []string // lines
}

// lay puts the panels into rows under one legend and over the caption.
func (p *picture) lay() *page {
	pg := &page{picture: p, columns: min(len(p.charts), 2), looks: lookOf(p.seriesOf(), p.looks)}
	pg.width = min(panelWidth*vg.Length(max(1, p.wide)), pageWidth)
	switch {
	case pg.width > panelWidth:
		pg.columns = 1
	case pg.columns > 1:
		pg.width = pageWidth
	}
	room := pg.width - 2*margin
	pg.legend = legendRows(p.entries(pg.looks), room)
	pg.caption = wrap(p.captioned(), captionStyle(), room)
	rows := vg.Length((len(pg.charts) + pg.columns - 1) / pg.columns)
	row := panelHeight - legendHeight
	if pg.charts[0].low {
		row *= 0.6
	}
	pg.height = rows*row + legendOf(pg.legend) + captionLine*vg.Length(len(pg.caption))
	return pg
}

func (pg *page) paint(canvas draw.Canvas) {
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Rectangle.Path())
	all := draw.Crop(canvas, margin, -margin, margin, -margin)
	drawLegend(all, pg.legend)
	low := captionLine * vg.Length(len(pg.caption))
	drawCaption(all, pg.caption)

	rows := (len(pg.charts) + pg.columns - 1) / pg.columns
	tiles := draw.Tiles{Rows: rows, Cols: pg.columns, PadX: 2 * margin, PadY: 2 * margin}
	plots := make([][]*plot.Plot, rows)
	for i := range plots {
		plots[i] = make([]*plot.Plot, pg.columns)
	}
	room := (all.Max.X-all.Min.X+tiles.PadX)/vg.Length(pg.columns) - tiles.PadX
	for i := range pg.charts {
		plt := newPlot(&pg.charts[i], pg.looks)
		pg.charts[i].shrink(plt, room)
		plots[i/pg.columns][i%pg.columns] = plt
	}
	for i, row := range plot.Align(plots, tiles, draw.Crop(all, 0, 0, low, -legendOf(pg.legend))) {
		for j, c := range row {
			if plots[i][j] != nil {
				plots[i][j].Draw(c)
			}
		}
	}
}

// shrink has a panel's title, and the names of its groups, fit its width.
func (c *chart) shrink(plt *plot.Plot, room vg.Length) {
	fit(&plt.Title.TextStyle, room, strings.Split(c.title, "\n")...)
	each := (room - axisWidth) / vg.Length(max(len(c.groups), 1))
	for _, g := range c.groups {
		fit(&plt.X.Tick.Label, 0.95*each, g.label)
	}
}

// fit makes a font smaller where one of some lines does not fit.
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

// drawCaption writes lines at the bottom.
func drawCaption(c draw.Canvas, lines []string) {
	for i, line := range lines {
		c.FillText(captionStyle(),
			vg.Point{X: c.Min.X, Y: c.Min.Y + captionLine*vg.Length(len(lines)-1-i)}, line)
	}
}

// wrap breaks words into lines of a width.
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
