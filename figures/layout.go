package figures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/color"
	"io/fs"
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
	"github.com/sparseserve/sparseserve/internal/files"
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

// Draw writes one file per figure and format (png, svg, pdf; PNG by default) into dir and returns
// the paths of the pictures. The numbers of all figures are in one CSV. It is an error if that file
// exists and is not a CSV of pictures.
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
	table := filepath.Join(dir, NumbersFile)
	if text := numbers(figures); text != nil {
		if err := replaceable(table); err != nil {
			return nil, err
		}
		if err := writeFile(table, text); err != nil {
			return nil, err
		}
	}
	for i := range figures {
		if err := ctx.Err(); err != nil {
			return paths, err
		}
		more, err := write(filepath.Join(dir, figures[i].Name), &figures[i], formats)
		if paths = append(paths, more...); err != nil {
			return paths, err
		}
	}
	return paths, nil
}

// write writes a figure to path.FORMAT for each format.
func write(path string, f *doc.Figure, formats []string) (paths []string, err error) {
	if len(f.Charts) == 0 {
		return nil, nil
	}
	s := layout(f)
	for _, format := range formats {
		data, err := s.encode(format)
		if err == nil {
			err = writeFile(path+"."+format, data)
		}
		if err != nil {
			return paths, err
		}
		paths = append(paths, path+"."+format)
	}
	return paths, nil
}

// replaceable returns an error if the file exists and is not a CSV of pictures.
func replaceable(path string) error {
	text, err := files.ReadResult(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !strings.HasPrefix(string(text), strings.Join(numberColumns, ",")+"\n") {
		err = fmt.Errorf("%s: is not of pictures, whose numbers would replace it; choose another "+
			"folder", path)
	}
	return err
}

// writeFile writes a file atomically.
func writeFile(path string, data []byte) error {
	return renameio.WriteFile(path, data, 0o644, renameio.WithTempDir(filepath.Dir(path)))
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
