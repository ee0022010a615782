package figures

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"github.com/google/renameio/v2"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// Sizes of a picture. A line chart with its legend is 6.4 x 4.2 inches, 1408 x 924 pixels, or wide
// and low. A picture of several charts is at most as wide as a page, 2400 pixels; the charts are
// arranged in tiles.
const (
	panelWidth  = 6.4 * vg.Inch
	panelHeight = 4.2*vg.Inch - legendHeight
	lowHeight   = 0.6 * panelHeight
	lowWidth    = 1.7 * panelWidth
	panelFrame  = 72 // points: height of a chart's title and axis
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
	rows, columns int
	plots         []*plot.Plot
}

// isLines reports whether a chart is a line chart.
func isLines(c *doc.Chart) bool { return len(c.Bars) == 0 && c.Heat == nil }

// layout arranges charts in tiles of one size, under one legend and above the caption: line charts
// in one or two columns, others in one.
func layout(f *doc.Figure) *sheet {
	looks, legend := looksOf(f)
	full, shades := fullChange(f.Charts)
	s := &sheet{dots: dotsPerInch, columns: 1}
	tile, height, names := vg.Length(panelWidth), vg.Length(0), vg.Length(0)
	switch {
	case !slices.ContainsFunc(f.Charts, isLines):
		s.dots, tile = tableDots, barsWidth
	case f.Charts[0].Low:
		tile = lowWidth
	case len(f.Charts) > 1:
		s.columns, tile = 2, pageWidth/2
	}
	tile -= 2 * margin
	panels := make([]interface {
		plot(width vg.Length) *plot.Plot
	}, len(f.Charts))
	for i, c := range f.Charts {
		switch {
		case c.Low:
			panels[i], height = newPanel(c, looks), max(height, lowHeight)
		case isLines(c):
			panels[i], height = newPanel(c, looks), max(height, panelHeight)
		case c.Heat != nil:
			panels[i] = &heatPanel{c, full}
			tile = max(heatLeft+heatColumn*vg.Length(len(c.Heat.ValuesA)), 0.6*barsWidth)
			height = max(height, panelFrame+heatRow*vg.Length(len(c.Heat.ValuesB)))
		default:
			p := newBars(c)
			for _, n := range p.names() {
				names = max(names, min(sided(tickSize).Width(n.Label), nameMost))
			}
			panels[i], height = p, max(height, panelFrame+vg.Length(p.height))
			legend = withParts(legend, c.Bars)
		}
	}
	if s.dots == tableDots {
		tile += names
	}
	for _, p := range panels {
		plt := p.plot(tile)
		fit(&plt.Title.TextStyle, tile, plt.Title.Text)
		s.plots = append(s.plots, plt)
	}
	s.rows = (len(panels) + s.columns - 1) / s.columns
	s.width = tile*vg.Length(s.columns) + 2*margin*vg.Length(s.columns-1)
	s.height = height*vg.Length(s.rows) + 2*margin*vg.Length(s.rows-1)
	s.legend = legendRows(append(legend, shades...), s.width)
	s.caption = wrap(f.Caption, captionStyle(), s.width)
	s.width += 2 * margin
	s.height += 2*margin + legendOf(s.legend) + captionOf(s.caption)
	return s
}

// paint draws legend, charts and caption.
func (s *sheet) paint(canvas draw.Canvas) {
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Rectangle.Path())
	c := draw.Crop(canvas, margin, -margin, margin, -margin)
	drawLegend(c, s.legend)
	drawCaption(c, s.caption)
	tiles := draw.Tiles{Rows: s.rows, Cols: s.columns, PadX: 2 * margin, PadY: 2 * margin}
	plots := make([][]*plot.Plot, s.rows)
	for i := range plots {
		plots[i] = make([]*plot.Plot, s.columns)
		copy(plots[i], s.plots[i*s.columns:])
	}
	at := plot.Align(plots, tiles,
		draw.Crop(c, 0, 0, captionOf(s.caption), -legendOf(s.legend)))
	for i, plt := range s.plots {
		drawTitled(at[i/s.columns][i%s.columns], plt)
	}
}

// drawTitled draws a plot and its title over the middle of its data. The plot itself would draw it
// over the middle of data and labels, which differs between panels.
func drawTitled(c draw.Canvas, plt *plot.Plot) {
	if title, style := plt.Title.Text, plt.Title.TextStyle; title != "" {
		defer func() { plt.Title.Text = title }()
		data, half := plt.DataCanvas(c), style.Width(title)/2
		x := max(c.Min.X+half, min(data.Center().X, c.Max.X-half))
		c.FillText(style, vg.Point{X: x, Y: c.Max.Y + style.FontExtents().Descent}, title)
		c.Max.Y -= style.Rectangle(title).Size().Y + plt.Title.Padding
		plt.Title.Text = ""
	}
	plt.Draw(c)
}

// named puts names at an axis in place of numbers. A font that does not fit the room is smaller.
func named(a *plot.Axis, names []plot.Tick, room vg.Length) {
	a.Tick.Marker, a.Tick.Length, a.LineStyle.Width = plot.ConstantTicks(names), 0, 0
	for _, n := range names {
		fit(&a.Tick.Label, room, strings.Split(n.Label, "\n")...)
	}
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

// captionOf returns the height of a caption with the space above it; 0 without one.
func captionOf(lines []string) vg.Length {
	if len(lines) == 0 {
		return 0
	}
	return captionLine*vg.Length(len(lines)) + margin
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

// Draw writes one file per figure and format (png, svg, pdf; PNG by default) into dir and returns
// their paths.
func Draw(ctx context.Context, dir string, figures []doc.Figure, formats ...string) (
	paths []string, err error) {
	if len(formats) == 0 {
		formats = []string{"png"}
	}
	slices.Sort(formats)
	formats = slices.Compact(formats)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i := range figures {
		path := filepath.Join(dir, figures[i].Name)
		if names[path] {
			return nil, fmt.Errorf("%s: two pictures have this name", path)
		}
		names[path] = true
	}
	for i := range figures {
		f := &figures[i]
		if err := ctx.Err(); err != nil {
			return paths, err
		}
		if len(f.Charts) == 0 {
			continue
		}
		s := layout(f)
		for _, format := range formats {
			path := filepath.Join(dir, f.Name+"."+format)
			data, err := s.encode(format)
			if err == nil {
				err = renameio.WriteFile(path, data, 0o644, renameio.WithTempDir(dir))
			}
			if err != nil {
				return paths, err
			}
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// Resolutions of a PNG. Text is still legible at the lower one, for pictures that may have many
// rows.
const (
	dotsPerInch = 220
	tableDots   = dotsPerInch * 3 / 5
)

// encode draws the sheet in a format and returns the file. Equal pictures have equal bytes: a PDF
// contains no date.
func (s *sheet) encode(format string) ([]byte, error) {
	var canvas vg.CanvasWriterTo
	switch format {
	case "png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(s.width, s.height),
			vgimg.UseDPI(s.dots))}
	case "svg":
		canvas = vgsvg.New(s.width, s.height)
	case "pdf":
		fpdf.SetDefaultCatalogSort(true)
		fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
		fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
		canvas = vgpdf.New(s.width, s.height)
	default:
		return nil, fmt.Errorf("no format %q of pictures; there are png, svg and pdf", format)
	}
	s.paint(draw.NewCanvas(canvas, s.width, s.height))
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	return out.Bytes(), err
}
