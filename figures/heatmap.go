package figures

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// Sizes of a heat map in points.
const (
	heatRow    = 34
	heatColumn = 74
	heatHead   = 26
	heatFoot   = 46
	heatLeft   = 96 // minimum
	heatNote   = 10 // text of a change
)

// heatPanel is a heat map. Each cell has its value, and a colour for its change relative to the
// present setting.
type heatPanel struct {
	*doc.Chart
	full float64   // change of the full colour, in %
	left vg.Length // of the values of B
}

// heatsOf lays out heat maps and their colour legend.
func heatsOf(charts []*doc.Chart) (panels []block, legend []entry) {
	full, left := 0.0, vg.Length(heatLeft)
	for _, c := range charts {
		for _, cell := range c.Heat.Cells {
			full = math.Max(full, math.Abs(cell.Change))
		}
		for _, value := range c.Heat.ValuesB {
			left = min(max(left, rowStyle().Width(value)+24), rowMost)
		}
	}
	for _, c := range charts {
		panels = append(panels, &heatPanel{c, full, left})
	}
	h := charts[0].Heat
	for _, change := range []float64{-full, 0, full} {
		e := entry{name: fmt.Sprintf("%+.3g %%", change), kind: boxSample,
			look: look{color: heatShade(change, full, h.Higher)}}
		if change == 0 {
			e.name = "as configured"
		}
		legend = append(legend, e)
	}
	return panels, legend
}

func (p *heatPanel) size() (width, height vg.Length) {
	width = p.left + heatColumn*vg.Length(len(p.Heat.ValuesA))
	return max(width, min(rowStyle().Width(p.Title)+4, rowWidth)),
		heatHead + heatFoot + p.below() + heatRow*vg.Length(len(p.Heat.ValuesB))
}

// below returns the height of the A values beyond one line.
func (p *heatPanel) below() (most vg.Length) {
	for _, value := range p.Heat.ValuesA {
		most = max(most, captionLine*vg.Length(len(wrap(value, rowStyle(), heatColumn-2))-1))
	}
	return most
}

func (p *heatPanel) draw(c draw.Canvas) {
	style, h := rowStyle(), p.Heat
	title := style
	fit(&title, c.Max.X-c.Min.X, p.Title)
	c.FillText(title, vg.Point{X: c.Min.X, Y: c.Max.Y - heatHead/2}, p.Title)
	left, top := c.Min.X+p.left, c.Max.Y-heatHead
	bottom := top - heatRow*vg.Length(len(h.ValuesB)) // the lowest value of B is at the bottom
	center, right, note := style, style, style
	center.XAlign, right.XAlign, note.XAlign = text.XCenter, text.XRight, text.XCenter
	note.Font.Size = heatNote
	for i, value := range h.ValuesB {
		own := right
		fit(&own, p.left-24, value)
		c.FillText(own, vg.Point{X: left - 6, Y: bottom + heatRow*(vg.Length(i)+0.5)}, value)
	}
	for j, value := range h.ValuesA {
		for i, line := range wrap(value, center, heatColumn-2) {
			c.FillText(center, vg.Point{X: left + heatColumn*(vg.Length(j)+0.5),
				Y: bottom - 10 - captionLine*vg.Length(i)}, line)
		}
	}
	for i := range len(h.ValuesA) * len(h.ValuesB) { // cells without a value stay so
		c.FillText(center, vg.Point{X: left + heatColumn*(vg.Length(i%len(h.ValuesA))+0.5),
			Y: bottom + heatRow*(vg.Length(i/len(h.ValuesA))+0.5)}, "-")
	}
	for _, cell := range h.Cells {
		x, y := left+heatColumn*vg.Length(cell.X), bottom+heatRow*vg.Length(cell.Y)
		c.FillPolygon(heatShade(cell.Change, p.full, h.Higher), []vg.Point{{X: x + 1, Y: y + 1},
			{X: x + heatColumn - 1, Y: y + 1}, {X: x + heatColumn - 1, Y: y + heatRow - 1},
			{X: x + 1, Y: y + heatRow - 1}})
		c.FillText(center, vg.Point{X: x + heatColumn/2, Y: y + 0.68*heatRow}, stats.Digits(cell.Value))
		c.FillText(note, vg.Point{X: x + heatColumn/2, Y: y + 0.28*heatRow}, signed(cell.Change))
	}
	c.FillText(center, vg.Point{X: left + heatColumn*vg.Length(len(h.ValuesA))/2,
		Y: bottom - p.below() - 27}, h.A)
	center.Rotation = math.Pi / 2
	c.FillText(center, vg.Point{X: c.Min.X + 10, Y: (top + bottom) / 2}, h.B)
}

// heatShade returns white for no change, blue for better and red for worse.
func heatShade(change, full float64, higher bool) color.Color {
	if full == 0 {
		return shade(0)
	}
	if higher {
		change = -change // shade is red above
	}
	return shade(change / full)
}

// shade returns white for 0, shading to red at 1 and to blue at -1.
func shade(share float64) color.Color {
	toward := [3]float64{0xe8, 0x6a, 0x58}
	if share < 0 {
		toward = [3]float64{0x5a, 0x9c, 0xd6}
	}
	share = math.Min(1, math.Abs(share))
	at := func(i int) uint8 { return uint8(math.Round(0xfa + share*(toward[i]-0xfa))) }
	return color.RGBA{at(0), at(1), at(2), 0xff}
}

// signed formats a change in % with its sign.
func signed(percent float64) string {
	if math.Abs(percent) < 0.05 {
		return "0 %"
	}
	return fmt.Sprintf("%+.1f %%", percent)
}
