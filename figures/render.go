package figures

import (
	"bytes"
	"encoding/csv"
	"image/color"
	"path/filepath"
	"strconv"

	"github.com/google/renameio/v2"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Size of a picture: one panel is 6.4 x 4.2 inches, 1408 x 924 pixels.
const (
	panelWidth   = 6.4 * vg.Inch
	panelHeight  = 4.2 * vg.Inch
	legendHeight = 32 // points, above the panels
	headHeight   = 24 // points, above the legend
	margin       = 8  // points, around everything
	dotsPerInch  = 220
)

// write writes the picture and its numbers into dir and returns the
// path of the PNG.
func (p *picture) write(dir string) (string, error) {
	png, err := p.render()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, p.file)
	if err := writeFile(path+".png", png); err != nil {
		return "", err
	}
	return path + ".png", writeFile(path+".csv", p.tabulate())
}

// writeFile writes a file whole or not at all.
func writeFile(path string, data []byte) error {
	return renameio.WriteFile(path, data, 0o644, renameio.WithTempDir(filepath.Dir(path)))
}

// render draws the charts side by side under one legend.
func (p *picture) render() ([]byte, error) {
	width := panelWidth * vg.Length(len(p.charts))
	if p.wide > 0 {
		width *= vg.Length(p.wide)
	}
	height := panelHeight
	if p.head != "" {
		height += headHeight
	}
	img := vgimg.NewWith(
		vgimg.UseWH(width, height),
		vgimg.UseDPI(dotsPerInch),
	)
	all := draw.Crop(draw.New(img), margin, -margin, margin, -margin)
	if p.head != "" {
		drawHead(all, p.head)
		all = draw.Crop(all, 0, 0, 0, -headHeight)
	}
	looks := lookOf(p.seriesOf(), p.looks)
	drawLegend(draw.Crop(all, 0, 0, all.Max.Y-all.Min.Y-legendHeight, 0), p.entries(looks))

	body := draw.Crop(all, 0, 0, 0, -legendHeight)
	tiles := draw.Tiles{Rows: 1, Cols: len(p.charts), PadX: 2 * margin}
	row := make([]*plot.Plot, len(p.charts))
	for i := range p.charts {
		row[i] = newPlot(&p.charts[i], looks)
		if p.charts[i].right != nil {
			tiles.PadRight = rightWidth
		}
	}
	for i, c := range plot.Align([][]*plot.Plot{row}, tiles, body)[0] {
		row[i].Draw(c)
	}

	var out bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: img}.WriteTo(&out)
	return out.Bytes(), err
}

// drawHead writes one line at the top, smaller where it would not fit.
func drawHead(c draw.Canvas, head string) {
	style := text.Style{Color: color.Black, Font: sans(labelSize), XAlign: text.XCenter, YAlign: text.YTop, Handler: plot.DefaultTextHandler}
	if room, width := c.Max.X-c.Min.X, style.Width(head); width > room {
		style.Font.Size *= room / width
	}
	c.FillText(style, vg.Point{X: c.Center().X, Y: c.Max.Y}, head)
}

// tabulate writes the numbers of a picture, one row a marker or part of a bar.
func (p *picture) tabulate() []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.Write([]string{"panel", "quantity", "series", "x", "runs", "mean", "low95", "high95", "unstable"})
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	row := func(c *chart, quantity, group, series string, q point) {
		x := group
		if len(c.groups) == 0 {
			x = number(q.x)
		}
		w.Write([]string{c.title, quantity, series, x, strconv.Itoa(q.runs),
			number(q.mean), number(q.low), number(q.high), strconv.FormatBool(q.unstable)})
	}
	for i := range p.charts {
		c := &p.charts[i]
		for _, one := range c.curves {
			quantity := c.y
			if one.right {
				quantity = c.right.label
			}
			for _, q := range one.points {
				row(c, quantity, "", one.series, q)
			}
		}
		for _, g := range c.groups {
			for _, b := range g.bars {
				for _, part := range b.parts {
					name := part.series
					if b.series != "" && b.series != name {
						name = b.series + ": " + name
					}
					row(c, c.y, g.label, name, part.point)
				}
				if b.total != nil {
					row(c, c.y, g.label, b.series+": total", *b.total)
				}
			}
		}
	}
	w.Flush()
	return out.Bytes()
}
