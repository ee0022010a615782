package calibrate

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// inks tell curves apart in colour and, by their lightness, in grey print.
var inks = []color.RGBA{{0x1f, 0x5a, 0xa6, 0xff}, {0x9d, 0xc3, 0xe6, 0xff}, {0xc4, 0x4e, 0x1a, 0xff}, {0xf2, 0xb2, 0x8a, 0xff}}

// render draws the figure: curves over a logarithmic scale, or groups of bars.
func (f *paperFigure) render() ([]byte, error) {
	p := newPlot()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.title, f.xLabel, f.yLabel
	p.Y.Scale, p.Y.Tick.Marker = plot.LinearScale{}, plot.DefaultTicks{}
	p.Legend.Top = true
	draw := f.lines
	if f.bars {
		draw = f.barGroups
	}
	if err := draw(p); err != nil {
		return nil, err
	}
	p.Y.Min = 0
	p.Y.Max *= 1.25 // room for the legend
	img := vgimg.NewWith(vgimg.UseWH(pictureWidth, pictureHeight), vgimg.UseDPI(dotsPerInch))
	p.Draw(cropped(img))
	return encodePNG(img)
}

func cropped(img *vgimg.Canvas) draw.Canvas {
	return draw.Crop(draw.New(img), 6, -10, 6, -6)
}

func (f *paperFigure) lines(p *plot.Plot) error {
	var ticks []plot.Tick
	for _, x := range f.curves[0].x {
		ticks = append(ticks, plot.Tick{Value: x, Label: plain(x)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	for i, c := range f.curves {
		xy := make(plotter.XYs, len(c.x))
		for j := range c.x {
			xy[j] = plotter.XY{X: c.x[j], Y: c.y[j]}
		}
		line, points, err := plotter.NewLinePoints(xy)
		if err != nil {
			return err
		}
		line.Color, points.Color = inks[i%len(inks)], inks[i%len(inks)]
		line.Width = 1.6
		points.Shape, points.Radius = draw.CircleGlyph{}, 3
		if i%2 == 1 {
			line.Dashes = []vg.Length{5, 3}
		}
		p.Add(line, points)
		p.Legend.Add(c.name, line, points)
	}
	return nil
}

func (f *paperFigure) barGroups(p *plot.Plot) error {
	p.X.Scale = plot.LinearScale{}
	width := vg.Length(140 / len(f.groups))
	labels := plotter.XYLabels{}
	for i, c := range f.curves {
		bars, err := plotter.NewBarChart(plotter.Values(c.y), width)
		if err != nil {
			return err
		}
		offset := vg.Length(float64(i)-float64(len(f.curves)-1)/2) * width
		bars.Color, bars.Offset = inks[2*(i%2)+0], offset
		bars.LineStyle.Width = 0
		p.Add(bars)
		p.Legend.Add(c.name, bars)
		for j, y := range c.y {
			labels.XYs = append(labels.XYs, plotter.XY{X: float64(j), Y: y})
			labels.Labels = append(labels.Labels, plain(math.Round(100*y)/100))
		}
	}
	for i := range f.curves { // one Labels a curve: the offset belongs to all of them
		n := len(f.curves[i].y)
		part := plotter.XYLabels{XYs: labels.XYs[i*n : (i+1)*n], Labels: labels.Labels[i*n : (i+1)*n]}
		l, err := plotter.NewLabels(part)
		if err != nil {
			return err
		}
		l.Offset = vg.Point{X: vg.Length(float64(i)-float64(len(f.curves)-1)/2) * width, Y: 3}
		for k := range l.TextStyle {
			l.TextStyle[k].XAlign = text.XCenter
			l.TextStyle[k].Font.Size = 9
			l.TextStyle[k].Font.Variant = "Sans"
		}
		p.Add(l)
	}
	p.NominalX(f.groups...)
	p.X.Min, p.X.Max = -0.6, float64(len(f.groups))-0.4
	return nil
}
