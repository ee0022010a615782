package figures

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// heatMap has a row for each value of B and a column for each of A.
type heatMap struct {
	A       string   `json:"a"`
	B       string   `json:"b"`
	FactorA bool     `json:"factor_a"`
	FactorB bool     `json:"factor_b"`
	ValuesA []string `json:"values_a"`
	ValuesB []string `json:"values_b"`
	// Cells are nil where no request was served.
	Cells [][]*float64 `json:"cells"`
}

// Sizes of a heat map in points.
const (
	heatRow    = 34
	heatColumn = 74
	heatHead   = 26
	heatFoot   = 46
	heatLeft   = 96
	heatScale  = 46
)

// drawHeat draws a heat map a case, one below the other: each cell's value, and in colour how much
// better or worse than what there is.
func drawHeat(dir string, w *whatIf, formats []string) ([]string, error) {
	var cases []*whatIfCase
	width, height, full := vg.Length(0), vg.Length(0), 0.0
	for i := range w.Cases {
		c := &w.Cases[i]
		if c.Heat == nil || len(c.Heat.Cells) == 0 {
			continue
		}
		cases = append(cases, c)
		width = max(width, heatLeft+heatColumn*vg.Length(len(c.Heat.ValuesA)))
		height += heatHead + heatFoot + heatRow*vg.Length(len(c.Heat.ValuesB))
		for _, row := range c.Heat.Cells {
			for _, v := range row {
				if v == nil {
					continue
				}
				full = math.Max(full, math.Abs(c.change(*v)))
			}
		}
	}
	if len(cases) == 0 {
		return nil, nil
	}
	style := text.Style{Color: color.Black, Font: sans(errorLabel), YAlign: text.YCenter,
		Handler: plot.DefaultTextHandler}
	for _, c := range cases {
		width = max(width, style.Width(c.head())+4)
	}
	caption := wrap(w.caption(false), captionStyle(), width)
	width += 2 * margin
	height += heatScale + captionLine*vg.Length(len(caption)) + 2*margin
	return writeFormats(filepath.Join(dir, "heat"), formats, tableDots, width, height,
		func(canvas draw.Canvas) {
			canvas.SetColor(color.White)
			canvas.Fill(canvas.Rectangle.Path())
			c := draw.Crop(canvas, margin, -margin, margin, -margin)
			drawCaption(c, caption)
			top := c.Max.Y
			for _, one := range cases {
				top = one.drawHeat(&c, top, style, w, full)
			}
			drawShades(&c, style, top-8, full, w.Higher)
		})
}

// change is relative to what there is.
func (c *whatIfCase) change(v float64) float64 {
	if c.Base.Value == 0 {
		return 0
	}
	return v/c.Base.Value - 1
}

// drawHeat draws one map below top and returns where it ends.
func (c *whatIfCase) drawHeat(canvas *draw.Canvas, top vg.Length, style text.Style, w *whatIf,
	full float64) vg.Length {
	h := c.Heat
	canvas.FillText(style, vg.Point{X: canvas.Min.X, Y: top - heatHead/2}, c.head())
	top -= heatHead
	left := canvas.Min.X + heatLeft
	center, right := style, style
	center.XAlign, right.XAlign = text.XCenter, text.XRight
	rows := len(h.Cells)
	for i, cells := range h.Cells {
		low := top - heatRow*vg.Length(rows-i) // the lowest value of B at the bottom
		canvas.FillText(right, vg.Point{X: left - 6, Y: low + heatRow/2}, h.ValuesB[i])
		for j, v := range cells {
			x := left + heatColumn*vg.Length(j)
			box := vg.Rectangle{Min: vg.Point{X: x + 1, Y: low + 1},
				Max: vg.Point{X: x + heatColumn - 1, Y: low + heatRow - 1}}
			if v == nil {
				canvas.FillText(center, vg.Point{X: x + heatColumn/2, Y: low + heatRow/2}, "-")
				continue
			}
			canvas.FillPolygon(heatShade(c.change(*v), full, w.Higher),
				[]vg.Point{box.Min, {X: box.Max.X, Y: box.Min.Y}, box.Max, {X: box.Min.X, Y: box.Max.Y}})
			canvas.FillText(center, vg.Point{X: x + heatColumn/2, Y: low + heatRow/2}, digits(*v))
		}
	}
	// The first row of cells is the lowest; its labels are below it.
	bottom := top - heatRow*vg.Length(rows)
	for j, value := range h.ValuesA {
		canvas.FillText(center, vg.Point{X: left + heatColumn*(vg.Length(j)+0.5), Y: bottom - 10}, value)
	}
	canvas.FillText(center, vg.Point{X: left + heatColumn*vg.Length(len(h.ValuesA))/2, Y: bottom - 27},
		factorName(h.A, h.FactorA))
	upright := center
	upright.Rotation = math.Pi / 2
	canvas.FillText(upright, vg.Point{X: canvas.Min.X + 10, Y: (top + bottom) / 2},
		factorName(h.B, h.FactorB))
	return bottom - heatFoot
}

// factorName says of a knob whose values are factors that they are.
func factorName(knob string, factor bool) string {
	if factor {
		return knob + " (factor)"
	}
	return knob
}

// heatShade is white for no change, blue for better and red for worse.
func heatShade(change, full float64, higher bool) color.Color {
	if full == 0 {
		return shade(0)
	}
	if higher {
		change = -change // shade is red above
	}
	return shade(fullShade * change / full)
}

// drawShades draws the scale of colours below y.
func drawShades(c *draw.Canvas, style text.Style, y vg.Length, full float64, higher bool) {
	const cells = 31
	style.XAlign = text.XCenter
	bar := min(240, (c.Max.X-c.Min.X)*0.7)
	x := (c.Min.X+c.Max.X-bar)/2 + vg.Length(0)
	for i := range cells {
		e := full * (2*float64(i)/(cells-1) - 1)
		from, to := x+bar*vg.Length(i)/cells, x+bar*vg.Length(i+1)/cells
		c.FillPolygon(heatShade(e, full, higher), []vg.Point{{X: from, Y: y - 11}, {X: to, Y: y - 11},
			{X: to, Y: y}, {X: from, Y: y}})
	}
	for _, share := range []float64{-1, 0, 1} {
		words := fmt.Sprintf("%+.0f %%", 100*full*share)
		if share == 0 {
			words = "as it is"
		}
		c.FillText(style, vg.Point{X: x + bar*vg.Length(share+1)/2, Y: y - 21}, words)
	}
}
