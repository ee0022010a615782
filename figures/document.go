package figures

import (
	"context"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// tableDots is the resolution of a PNG that may have many rows, in dots per inch. Text still reads.
const tableDots = dotsPerInch * 3 / 5

// DrawDoc draws the figures of a document into dir, a file each, and returns the paths. All charts
// of a figure are of one kind. The document's results have the numbers, so there is no CSV.
func DrawDoc(ctx context.Context, dir string, figures []doc.Figure, formats ...string) (
	paths []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for i := range figures {
		if err := ctx.Err(); err != nil {
			return paths, err
		}
		f := &figures[i]
		if len(f.Charts) == 0 {
			continue
		}
		s, dots := sheetOf(f), tableDots
		if kind := f.Charts[0].Kind; kind == doc.Lines || kind == "" {
			s, dots = chartsOf(f), dotsPerInch
		}
		more, err := writeFormats(filepath.Join(dir, f.Name), formats, dots, s.width, s.height, s.paint)
		if paths = append(paths, more...); err != nil {
			return paths, err
		}
	}
	return paths, nil
}

// sheet is a picture that is laid out. Sizes are in points.
type sheet struct {
	width, height vg.Length
	paint         func(draw.Canvas)
}

// stacked is a chart that is laid out to stand above and below others.
type stacked interface {
	size() (width, height vg.Length)
	draw(c draw.Canvas)
}

// sheetOf lays panels of rows or of a heat map below each other, under a legend and over the
// caption.
func sheetOf(f *doc.Figure) sheet {
	var panels []stacked
	var legend []entry
	switch f.Charts[0].Kind {
	case doc.HeatMap:
		panels = heatsOf(f.Charts)
	default:
		panels, legend = rowsOf(f.Charts)
	}
	width, height := vg.Length(0), vg.Length(0)
	for _, p := range panels {
		w, h := p.size()
		width, height = max(width, w), height+h
	}
	rows := legendRows(legend, width)
	head := vg.Length(0)
	if len(rows) > 0 {
		head = legendOf(rows)
	}
	caption := wrap(f.Caption, captionStyle(), width)
	height += head + captionLine*vg.Length(len(caption))
	return sheet{width + 2*margin, height + 2*margin, func(canvas draw.Canvas) {
		canvas.SetColor(color.White)
		canvas.Fill(canvas.Rectangle.Path())
		c := draw.Crop(canvas, margin, -margin, margin, -margin)
		drawLegend(c, rows)
		drawCaption(c, caption)
		top := c.Max.Y - head
		for _, p := range panels {
			_, h := p.size()
			p.draw(draw.Crop(c, 0, 0, top-h-c.Min.Y, top-c.Max.Y))
			top -= h
		}
	}}
}

// chartsOf lays out charts over x, as those of runs are.
func chartsOf(f *doc.Figure) sheet {
	pic := picture{file: f.Name, caption: f.Caption, looks: map[string]look{}}
	for _, d := range f.Charts {
		c := chart{title: d.Title, x: d.X, y: d.Y, marks: d.Marks, levels: d.Levels}
		for i, l := range d.Lines {
			if _, has := pic.looks[l.Name]; !has { // a name looks the same in all charts
				own := nthLook(i)
				own.color, own.dashes = colorOf(l.Color), nil
				if l.Dashed {
					own.dashes = []vg.Length{7, 3}
				}
				pic.looks[l.Name] = own
			}
			one := curve{series: l.Name, bare: l.Bare, dots: l.Dots}
			for _, p := range l.Points {
				q := point{x: p.X, runs: 1, mean: p.Y, low: p.Y, high: p.Y, values: p.Runs}
				if p.Low != nil && p.High != nil {
					q.low, q.high = *p.Low, *p.High
				}
				one.points = append(one.points, q)
				if l.Dots && p.Note != "" {
					c.labels = append(c.labels, note{p.X, p.Y, p.Note})
				}
			}
			c.curves = append(c.curves, one)
		}
		c.axis = heights(d, c.curves)
		switch across := spanOf(c.curves, abscissae); {
		case d.LogX && d.LogY:
			a := wideLog(across)
			c.across = &a
		case d.LogX && across.low > 0:
			c.across = &axis{across.low / 1.3, across.high * 1.3, true}
		case slices.ContainsFunc(c.curves, func(one curve) bool { return len(one.points) > 8 }):
			pad := max(0.02*(across.high-across.low), 1e-9)
			c.across = &axis{across.low - pad, across.high + pad, false}
		}
		pic.charts = append(pic.charts, c)
	}
	pg := pic.lay()
	return sheet{pg.width, pg.height, pg.paint}
}

// heights is the axis of y.
func heights(d *doc.Chart, curves []curve) axis {
	s := spanOf(curves, means)
	for _, level := range d.Levels {
		s = union([]span{s, {level, level}})
	}
	switch {
	case d.LogX && d.LogY:
		return wideLog(s)
	case s.low < 0:
		s.high = math.Max(s.high, 0)
		pad := 0.08 * (s.high - s.low)
		return axis{s.low - pad, s.high + pad, false}
	}
	a := fitted(curves)
	if d.LogY {
		a = logarithmic(curves)
	}
	for _, level := range d.Levels {
		a.high = max(a.high, 1.08*level)
	}
	return a
}

// colorOf is the colour of #rrggbb; grey of another text.
func colorOf(hex string) color.Color {
	if len(hex) == 7 {
		if v, err := strconv.ParseUint(hex[1:], 16, 32); err == nil {
			return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
		}
	}
	return color.Gray{0x7a}
}

// rowStyle is that of texts beside rows and cells, to the right of where they begin.
func rowStyle() text.Style {
	return text.Style{Color: color.Black, Font: sans(12), YAlign: text.YCenter,
		Handler: plot.DefaultTextHandler}
}

// signed is a change in % with its sign.
func signed(percent float64) string {
	if math.Abs(percent) < 0.05 {
		return "0 %"
	}
	return fmt.Sprintf("%+.1f %%", percent)
}
