package figures

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// rightWidth is the width next to a panel for a right axis.
const rightWidth = 80 // points

// rightAxis draws a second y axis along the right edge, outside the panel.
type rightAxis struct {
	*scale
	left axis
}

func (r rightAxis) Plot(c draw.Canvas, plt *plot.Plot) {
	_, toY := plt.Transforms(&c)
	line := draw.LineStyle{Color: color.Black, Width: 0.8}
	c.StrokeLine2(line, c.Max.X, c.Min.Y, c.Max.X, c.Max.Y)
	style := text.Style{Color: color.Black, Font: sans(tickSize), YAlign: text.YCenter,
		Handler: plot.DefaultTextHandler}
	descent := style.FontExtents().Descent // as gonum places the labels of its own axes
	for _, t := range r.axis.Ticks(0, 0) {
		v := t.Value
		if r.axis.log {
			v = math.Pow(10, v)
		}
		y := toY(r.axis.onto(r.left, v))
		length := vg.Length(5)
		if t.IsMinor() {
			length = 2.5
		}
		c.StrokeLine2(line, c.Max.X, y, c.Max.X+length, y)
		c.FillText(style, vg.Point{X: c.Max.X + 8, Y: y + descent}, t.Label)
	}
	style.Font, style.Rotation, style.XAlign, style.YAlign = sans(labelSize), -math.Pi/2, text.XCenter,
		text.YBottom
	c.FillText(style, vg.Point{X: c.Max.X + rightWidth - 18, Y: c.Center().Y}, r.label)
}
