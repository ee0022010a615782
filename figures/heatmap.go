package figures

import (
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
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
	heatLeft   = 96 // of the values of B and the name
	heatNote   = 10 // text of a change
)

// heatPanel is a heat map. Each cell has its value, and a colour for its change relative to the
// present setting.
type heatPanel struct {
	*doc.Chart
	full float64 // change of the full colour, in %
}

// fullChange returns the largest change of heat maps, in %, and the legend of their colours.
func fullChange(charts []*doc.Chart) (full float64, legend []entry) {
	higher, any := false, false
	for _, c := range charts {
		if c.Heat != nil {
			higher, any = c.Heat.Higher, true
			for _, cell := range c.Heat.Cells {
				full = math.Max(full, math.Abs(cell.Change))
			}
		}
	}
	if !any {
		return 0, nil
	}
	for _, change := range []float64{-full, 0, full} {
		e := entry{name: fmt.Sprintf("%+.3g %%", change),
			look: look{color: heatShade(change, full, higher)}}
		if change == 0 {
			e.name = "as configured"
		}
		legend = append(legend, e)
	}
	return full, legend
}

// plot sets up the heat map, whose cells are 1 wide and high.
func (p *heatPanel) plot(width vg.Length) *plot.Plot {
	h := p.Heat
	plt := framed(p.Title, h.A, h.B)
	plt.X.Max, plt.Y.Max = float64(len(h.ValuesA)), float64(len(h.ValuesB))
	var across, down []plot.Tick
	for i, value := range h.ValuesA {
		lines := wrap(value, sided(tickSize), heatColumn-2)
		across = append(across, plot.Tick{Value: float64(i) + 0.5, Label: strings.Join(lines, "\n")})
	}
	for i, value := range h.ValuesB {
		down = append(down, plot.Tick{Value: float64(i) + 0.5, Label: value})
	}
	named(&plt.X, across, heatColumn-2)
	named(&plt.Y, down, min(nameMost, 0.5*width))
	plt.Add(plotted(p.cells))
	return plt
}

// cells draws the cells. One without a value has a dash.
func (p *heatPanel) cells(c draw.Canvas, x, y func(float64) vg.Length) {
	value, note := sided(tickSize), sided(heatNote)
	value.XAlign, note.XAlign = text.XCenter, text.XCenter
	for i := range p.Heat.ValuesA {
		for j := range p.Heat.ValuesB {
			c.FillText(value, vg.Point{X: x(float64(i) + 0.5), Y: y(float64(j) + 0.5)}, "-")
		}
	}
	for _, cell := range p.Heat.Cells {
		left, low := float64(cell.X), float64(cell.Y)
		box := vg.Rectangle{Min: vg.Point{X: x(left) + 1, Y: y(low) + 1},
			Max: vg.Point{X: x(left+1) - 1, Y: y(low+1) - 1}}
		c.SetColor(heatShade(cell.Change, p.full, p.Heat.Higher))
		c.Fill(box.Path())
		c.FillText(value, vg.Point{X: x(left + 0.5), Y: y(low + 0.68)}, stats.Digits(cell.Value))
		c.FillText(note, vg.Point{X: x(left + 0.5), Y: y(low + 0.28)}, signed(cell.Change))
	}
}

// heatShade returns white for no change, shading to blue for better and to red for worse.
func heatShade(change, full float64, higher bool) color.Color {
	toward := [3]float64{0xe8, 0x6a, 0x58}
	if (change < 0) != higher {
		toward = [3]float64{0x5a, 0x9c, 0xd6}
	}
	share := 0.0
	if full > 0 {
		share = math.Min(1, math.Abs(change)/full)
	}
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
