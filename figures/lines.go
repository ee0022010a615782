package figures

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// Text sizes in points.
const (
	labelSize = 14
	tickSize  = 12.5
	noteSize  = 11
)

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// mostAtPoints is the maximum number of x values that are labelled themselves.
const mostAtPoints = 8

// levelStyle is the line of a level.
var levelStyle = draw.LineStyle{Color: color.Gray{0x60}, Width: 0.9, Dashes: []vg.Length{4, 3}}

// sided is the style of text beside what it names.
func sided(size vg.Length) text.Style {
	return text.Style{Color: color.Black, Font: sans(size), YAlign: text.YCenter,
		Handler: plot.DefaultTextHandler}
}

// panel is a line chart with its axes. x and y of the plot are scaled.
type panel struct {
	*doc.Chart
	x, y  axis
	looks map[string]look
}

func newPanel(c *doc.Chart, looks map[string]look) *panel {
	doc.Fit(c)
	return &panel{c, axis{c.XEnds[0], c.XEnds[1], c.LogX, false},
		axis{c.YEnds[0], c.YEnds[1], c.LogY, c.Whole}, looks}
}

// framed returns an empty plot with its title and the labels of its axes.
func framed(title, x, y string) *plot.Plot {
	plt := plot.New()
	plt.Title.Text = title
	plt.Title.TextStyle.Font = sans(labelSize)
	plt.Title.Padding = 6
	plt.X.Label.Text, plt.Y.Label.Text = x, y
	for _, axis := range []*plot.Axis{&plt.X, &plt.Y} {
		axis.Label.TextStyle.Font = sans(labelSize)
		axis.Label.Padding = 5
		axis.Tick.Label.Font = sans(tickSize)
		axis.LineStyle.Width = 0.8
		axis.Tick.LineStyle.Width = 0.8
		axis.Tick.Length = 5
		axis.Padding = 0
	}
	return plt
}

// plot sets up the line chart.
func (p *panel) plot(vg.Length) *plot.Plot {
	plt := framed(p.Title, p.X, p.Y)
	plt.X.Min, plt.X.Max = p.x.of(p.x.low), p.x.of(p.x.high)
	plt.Y.Min, plt.Y.Max = p.y.of(p.y.low), p.y.of(p.y.high)
	plt.X.Tick.Marker, plt.Y.Tick.Marker = p.x, p.y
	if ticks := p.atPoints(); ticks != nil {
		plt.X.Tick.Marker = plot.ConstantTicks(ticks)
	}
	plt.Add(grid(), plotted(p.marks), plotted(p.lines), plotted(p.notes))
	return plt
}

// atPoints labels the x axis at its points, such as simulated rates or powers of two; nil if they
// are many.
func (p *panel) atPoints() (ticks []plot.Tick) {
	var all []float64
	for _, l := range p.Lines {
		for _, q := range l.Points {
			if !l.Dots && !l.Bare {
				all = append(all, q.X)
			}
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 || len(all) > mostAtPoints {
		return nil
	}
	apart := 0.06 * (p.x.of(p.x.high) - p.x.of(p.x.low))
	last := math.Inf(-1)
	for _, x := range all {
		t := plot.Tick{Value: p.x.of(x)}
		if t.Value >= last+apart {
			t.Label, last = stats.Tick(x), t.Value
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// plotted draws one part of a panel.
type plotted func(c draw.Canvas, x, y func(float64) vg.Length)

// Plot implements plot.Plotter.
func (d plotted) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	d(c, x, y)
}

// grid returns faint lines at the labelled ticks of y.
func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color, g.Horizontal.Width = nil, color.Gray{0xdd}, 0.6
	return g
}

// at returns a point's position on the canvas.
func (p *panel) at(q *doc.Point, x, y func(float64) vg.Length) vg.Point {
	return vg.Point{X: x(p.x.of(q.X)), Y: y(p.y.of(q.Y))}
}

// marks draws the chart's dashed lines, and a solid line at y = 0 if y can be negative.
func (p *panel) marks(c draw.Canvas, x, y func(float64) vg.Length) {
	if p.y.low < 0 && !p.y.log {
		zero := draw.LineStyle{Color: color.Gray{0x60}, Width: 1}
		c.StrokeLine2(zero, c.Min.X, y(0), c.Max.X, y(0))
	}
	for _, v := range p.Levels {
		at := y(p.y.of(v))
		c.StrokeLine2(levelStyle, c.Min.X, at, c.Max.X, at)
	}
}

// lines draws a line chart: intervals or single runs, lines, then markers.
func (p *panel) lines(c draw.Canvas, x, y func(float64) vg.Length) {
	for i := range p.Lines {
		p.intervals(&c, i, x, y)
	}
	for i := range p.Lines {
		l := &p.Lines[i]
		if l.Dots {
			continue
		}
		look, line := p.looks[l.Name], make([]vg.Point, len(l.Points))
		for k := range l.Points {
			line[k] = p.at(&l.Points[k], x, y)
		}
		c.StrokeLines(draw.LineStyle{Color: look.color, Width: look.width, Dashes: look.dashes},
			c.ClipLinesXY(line)...)
	}
	numbers := map[vg.Length]int{}
	for i := range p.Lines {
		l := &p.Lines[i]
		if l.Bare {
			continue
		}
		look := p.looks[l.Name]
		for k := range l.Points {
			q := &l.Points[k]
			switch at := p.at(q, x, y); {
			case at.Y > c.Max.Y:
				drawLeft(&c, look, at.X, numbers[at.X], stats.Digits(q.Y))
				numbers[at.X]++
			case l.Dots && l.Name != doc.Published:
				drawMarker(&c, look, at, ringRadius, true)
			default:
				drawMarker(&c, look, at, markerRadius, l.Dots || q.Caveats != doc.Caveats{})
			}
		}
	}
}

// intervals draws the intervals or single runs of line i, slightly beside its markers, so that
// lines with the same x do not hide each other.
func (p *panel) intervals(c *draw.Canvas, i int, x, y func(float64) vg.Length) {
	l, n := &p.Lines[i], vg.Length(len(p.Lines))
	aside := (vg.Length(i) - (n-1)/2) * min(2.5, 16/n)
	ink := p.looks[l.Name].color
	for k := range l.Points {
		q := &l.Points[k]
		at := p.at(q, x, y)
		if l.Bare || at.Y > c.Max.Y {
			continue
		}
		drawRuns(c, ink, at.X+aside, q.Runs, p.y, y)
		if q.Shown() {
			drawWhisker(c, ink, at.X+aside, q, p.y, y)
		}
	}
}

// drawLeft marks a point above the panel with its symbol at the upper edge and its number. The nth
// such point at the same x is below the points before.
func drawLeft(c *draw.Canvas, l look, x vg.Length, nth int, number string) {
	at := vg.Point{X: x, Y: c.Max.Y - 7 - 15*vg.Length(nth)}
	drawMarker(c, l, at, markerRadius, true)
	style := sided(noteSize)
	from, width := at.X+markerRadius+4, style.Width(number)
	if from+width > c.Max.X+margin {
		from = at.X - markerRadius - 4 - width
	}
	box := vg.Rectangle{Min: vg.Point{X: from - 1, Y: at.Y - 6},
		Max: vg.Point{X: from + width + 1, Y: at.Y + 6}}
	c.SetColor(color.White)
	c.Fill(box.Path())
	c.FillText(style, vg.Point{X: from, Y: at.Y + 1}, number)
}

// drawRuns draws single runs as dots within the axis.
func drawRuns(c *draw.Canvas, ink color.Color, x vg.Length, runs []float64, a axis,
	y func(float64) vg.Length) {
	for _, v := range runs {
		if v >= a.low && v <= a.high {
			drawDot(c, ink, vg.Point{X: x, Y: y(a.of(v))}, runRadius)
		}
	}
}

// runRadius is the radius of a single run's dot, in points.
const runRadius = 1.5

func drawDot(c *draw.Canvas, ink color.Color, at vg.Point, radius vg.Length) {
	c.SetColor(ink)
	var path vg.Path
	path.Move(at.Add(vg.Point{X: radius}))
	path.Arc(at, radius, 0, 2*math.Pi)
	path.Close()
	c.Fill(path)
}

// drawWhisker draws the interval of a point. An end beyond the axis has no cap.
func drawWhisker(c *draw.Canvas, ink color.Color, x vg.Length, q *doc.Point, a axis,
	y func(float64) vg.Length) {
	low, high, style := *q.Low, *q.High, draw.LineStyle{Color: ink, Width: 1}
	c.StrokeLine2(style, x, y(a.of(max(low, a.low))), x, y(a.of(min(high, a.high))))
	for _, v := range []float64{low, high} {
		if v >= a.low && v <= a.high {
			c.StrokeLine2(style, x-3, y(a.of(v)), x+3, y(a.of(v)))
		}
	}
}

// mostNotes is the most dots with notes; more notes would hide the dots.
const mostNotes = 20

// notes writes the notes of dots beside them. A note that would hide a dot or a note is left out.
func (p *panel) notes(c draw.Canvas, x, y func(float64) vg.Length) {
	var noted []*doc.Point
	for i := range p.Lines {
		for k := range p.Lines[i].Points {
			if q := &p.Lines[i].Points[k]; p.Lines[i].Dots && q.Note != "" {
				noted = append(noted, q)
			}
		}
	}
	if len(noted) > mostNotes {
		return
	}
	style := sided(9.5)
	style.XAlign = text.XCenter
	var taken []vg.Rectangle
	for _, q := range noted {
		taken = append(taken, around(p.at(q, x, y), ringRadius, ringRadius))
	}
	for _, q := range noted {
		width := style.Width(q.Note)/2 + 2
		if width > 0.25*c.Size().X { // it would hide what is drawn
			continue
		}
		for _, aside := range []vg.Point{{Y: 11}, {Y: -11}, {X: width + 5}, {X: -width - 5}} {
			at := p.at(q, x, y).Add(aside)
			at.X = min(max(at.X, c.Min.X+width), c.Max.X-width)
			box := around(at, width, 6)
			if box.Min.Y > c.Min.Y && box.Max.Y < c.Max.Y && !meets(box, taken) {
				c.FillText(style, at, q.Note)
				taken = append(taken, box)
				break
			}
		}
	}
}

func around(p vg.Point, width, height vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: p.X - width, Y: p.Y - height},
		Max: vg.Point{X: p.X + width, Y: p.Y + height}}
}

func meets(box vg.Rectangle, taken []vg.Rectangle) bool {
	for _, t := range taken {
		if box.Min.X < t.Max.X && t.Min.X < box.Max.X && box.Min.Y < t.Max.Y && t.Min.Y < box.Max.Y {
			return true
		}
	}
	return false
}

// axis is the range and the scale of a quantity.
type axis struct {
	low, high float64
	log       bool
	whole     bool // the quantity is a count
}

// of scales a value.
func (a axis) of(v float64) float64 {
	if a.log {
		return math.Log10(math.Max(v, a.low))
	}
	return v
}

// Ticks labels a logarithmic axis at its decades, also at 2 and 5 within a few decades, and at most
// digits within a single decade. A linear axis has round steps, in whole numbers for counts. Values
// are scaled.
func (a axis) Ticks(_, _ float64) []plot.Tick {
	if !a.log {
		return slices.DeleteFunc(linearTicks(a.low, a.high),
			func(t plot.Tick) bool { return a.whole && t.Value != math.Round(t.Value) })
	}
	decades := math.Log10(a.high / a.low)
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(a.low)); e <= math.Log10(a.high); e++ {
		for digit := 1; digit < 10; digit++ {
			v := float64(digit) * math.Pow(10, e)
			if v < a.low || a.of(v) > a.of(a.high)-0.03*decades {
				continue
			}
			t := plot.Tick{Value: a.of(v)}
			if digit == 1 || decades < 2.5 && (digit == 2 || digit == 5) || decades < 1 && digit != 7 &&
				digit != 9 {
				t.Label = stats.Tick(v)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// linearTicks labels three to ten round values.
func linearTicks(low, high float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10(high-low)))
	switch {
	case (high-low)/step < 1.6:
		step /= 5
	case (high-low)/step < 4:
		step /= 2
	}
	var ticks []plot.Tick
	// a label at the very top would push the title up
	for i := math.Ceil(low / step); i*step <= high-0.03*(high-low); i++ {
		v := i * step
		if v == 0 {
			v = 0 // avoid the label -0
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: stats.Tick(v)})
	}
	return ticks
}
