package calibrate

import (
	"bytes"
	"cmp"
	"image/color"
	"math"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/sparseserve/sparseserve/hw"
)

// picture says how a model is drawn: over which size, and, where bytes per
// second say more than seconds, which bytes.
type picture struct {
	x      func(datum) float64
	xLabel string
	rate   func(datum) float64 // nil: seconds
}

// Size of a picture: 1408 x 924 pixels.
const (
	pictureWidth  = 6.4 * vg.Inch
	pictureHeight = 4.2 * vg.Inch
	dotsPerInch   = 220
)

var (
	inkFit   = color.RGBA{0x1f, 0x5a, 0xa6, 0xff}
	inkHeld  = color.RGBA{0xc4, 0x4e, 0x1a, 0xff}
	inkModel = color.RGBA{0x60, 0x60, 0x60, 0xff}
)

// drawFits writes one PNG for each model: what was measured against what the
// profile says.
func (c *Calibration) drawFits(dir string) error {
	for i := range c.models {
		png, err := c.models[i].render(c.Profile, c.Profile.Fits[i])
		if err != nil {
			return err
		}
		if err := renameio.WriteFile(filepath.Join(dir, "fit-"+c.models[i].name+".png"), png, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// render draws measured and fitted side by side: left over the size, right the
// fitted over the measured with the limits of a good fit.
func (m *model) render(p *hw.Profile, f hw.Fit) ([]byte, error) {
	left, right := newPlot(), newPlot()
	left.X.Label.Text = m.draw.xLabel
	left.Y.Label.Text = "us"
	if m.draw.rate != nil {
		left.Y.Label.Text = "GB/s"
	}
	right.X.Label.Text, right.Y.Label.Text = "measured, us", "fitted / measured"
	right.Y.Scale, right.Y.Tick.Marker = plot.LinearScale{}, tenths{}
	value := func(at datum, seconds float64) float64 {
		if m.draw.rate != nil {
			return m.draw.rate(at) / seconds * 1e-9
		}
		return seconds * 1e6
	}
	all := slices.Concat(m.fit, m.held)
	var fitted plotter.XYs
	for _, at := range all {
		fitted = append(fitted, plotter.XY{X: m.draw.x(at), Y: value(at, m.price(p, at))})
	}
	if err := scatter(left, fitted, draw.CrossGlyph{}, inkModel, "fitted"); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		points data
		ink    color.Color
		name   string
	}{{m.fit, inkFit, "measured, fit"}, {m.held, inkHeld, "measured, held out"}} {
		var measured, ratio plotter.XYs
		for _, at := range part.points {
			measured = append(measured, plotter.XY{X: m.draw.x(at), Y: value(at, at.seconds)})
			ratio = append(ratio, plotter.XY{X: at.seconds * 1e6, Y: m.price(p, at) / at.seconds})
		}
		if err := scatter(left, measured, draw.RingGlyph{}, part.ink, part.name); err != nil {
			return nil, err
		}
		if err := scatter(right, ratio, draw.RingGlyph{}, part.ink, ""); err != nil {
			return nil, err
		}
	}
	if err := m.labelWorst(right, p, all); err != nil {
		return nil, err
	}
	if err := limits(right, all); err != nil {
		return nil, err
	}
	left.Title.Text = m.name
	right.Title.Text = quality(f)
	left.Legend.Top = m.draw.rate == nil
	left.Legend.Left = m.draw.rate == nil
	return twoPanels(left, right)
}

func quality(f hw.Fit) string {
	return "held out: median " + percent(f.MedianError) + ", worst " + percent(f.MaxError) + "; R² of all " + number(f.R2)
}

// labelWorst names the three points that the fit misses most, one below the other
// where they are nearly as high.
func (m *model) labelWorst(p *plot.Plot, profile *hw.Profile, all data) error {
	ratio := func(at datum) float64 { return m.price(profile, at) / at.seconds }
	worst := slices.Clone(all)
	slices.SortStableFunc(worst, func(a, b datum) int { return cmp.Compare(math.Abs(ratio(b)-1), math.Abs(ratio(a)-1)) })
	lowest, highest := 0.8, 1.2
	for _, at := range all {
		lowest, highest = math.Min(lowest, ratio(at)), math.Max(highest, ratio(at))
	}
	worst = worst[:min(3, len(worst))]
	slices.SortStableFunc(worst, func(a, b datum) int { return cmp.Compare(ratio(b), ratio(a)) })
	const panel, above, line = 230, 3, 10 // points
	least, most := math.Log(smallestTime(all)), math.Log(largestTime(all))
	room := math.Inf(1) // below the label above
	for _, at := range worst {
		l, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: at.seconds * 1e6, Y: ratio(at)}}, Labels: []string{short(at.Point, all)}})
		if err != nil {
			return err
		}
		style := &l.TextStyle[0]
		style.Font.Size = 7.5
		style.Font.Variant = "Sans"
		if most > least { // as far to the left of its point as that lies to the right: it stays within the panel
			style.XAlign = draw.XAlignment((least - math.Log(at.seconds)) / (most - least))
		}
		point := ratio(at) / (highest - lowest) * panel
		height := math.Min(point+above, room)
		l.Offset.Y = vg.Points(height - point)
		room = height - line
		p.Add(l)
	}
	return nil
}

// limits draws the lines of 0 and of the worst error allowed.
func limits(p *plot.Plot, all data) error {
	from, to := smallestTime(all)*1e6*0.8, largestTime(all)*1e6*1.25
	for _, y := range []float64{1 - worstLimit, 1, 1 + worstLimit} {
		line, err := plotter.NewLine(plotter.XYs{{X: from, Y: y}, {X: to, Y: y}})
		if err != nil {
			return err
		}
		line.Color = inkModel
		line.Width = 0.6
		if y != 1 {
			line.Dashes = []vg.Length{3, 3}
		}
		p.Add(line)
	}
	p.Y.Min, p.Y.Max = math.Min(p.Y.Min, 0.8), math.Max(p.Y.Max, 1.2)
	return nil
}

func smallestTime(d data) float64 {
	t := infinite
	for _, at := range d {
		t = math.Min(t, at.seconds)
	}
	return t
}

func largestTime(d data) float64 {
	t := 0.0
	for _, at := range d {
		t = math.Max(t, at.seconds)
	}
	return t
}

// newPlot returns an empty plot with logarithmic axes and one type face.
func newPlot() *plot.Plot {
	p := plot.New()
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	for _, f := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		size := f.Size
		*f = sans
		f.Size = size
	}
	p.Title.TextStyle.Font.Size = 10
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = 10, 10
	p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = 9, 9
	p.Legend.TextStyle.Font.Size = 8.5
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = decades{}, decades{}
	p.Add(thinGrid())
	return p
}

func thinGrid() *plotter.Grid {
	g := plotter.NewGrid()
	for _, l := range []*draw.LineStyle{&g.Horizontal, &g.Vertical} {
		l.Color, l.Width = color.Gray{0xe0}, 0.5
	}
	return g
}

func scatter(p *plot.Plot, points plotter.XYs, glyph draw.GlyphDrawer, ink color.Color, name string) error {
	if len(points) == 0 {
		return nil
	}
	s, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	s.GlyphStyle = draw.GlyphStyle{Color: ink, Radius: 2.2, Shape: glyph}
	p.Add(s)
	if name != "" {
		p.Legend.Add(name, s)
	}
	return nil
}

// twoPanels draws two plots side by side.
func twoPanels(left, right *plot.Plot) ([]byte, error) {
	img := vgimg.NewWith(vgimg.UseWH(2*pictureWidth*0.75, pictureHeight*0.85), vgimg.UseDPI(dotsPerInch))
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: 14, PadTop: 6, PadBottom: 6, PadLeft: 6, PadRight: 10}
	canvases := plot.Align([][]*plot.Plot{{left, right}}, tiles, draw.New(img))
	left.Draw(canvases[0][0])
	right.Draw(canvases[0][1])
	return encodePNG(img)
}

func encodePNG(img *vgimg.Canvas) ([]byte, error) {
	var buf bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(&buf); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
