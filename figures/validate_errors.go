package figures

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// errorMetrics are the columns of the chart of errors.
func errorMetrics() []struct{ key, title string } {
	return []struct{ key, title string }{
		{"ttft_mean_s", "TTFT mean"}, {"ttft_p50_s", "TTFT P50"}, {"ttft_p99_s", "TTFT P99"},
		{"tbt_mean_s", "TBT mean"}, {"tbt_p50_s", "TBT P50"}, {"tbt_p99_s", "TBT P99"},
		{"throughput_tok_s", "throughput"}, {"blocks_loaded_per_step", "blocks loaded"}, {"hit_ratio", "hit ratio"}, {"steps", "steps"},
		{"step_decode_mean_s", "decode step"}, {"step_mixed_mean_s", "mixed step"},
	}
}

// Sizes of the chart of errors.
const (
	errorRow    = 19 // points
	errorColumn = 58
	errorHead   = 44
	errorLabel  = 12 // text
)

// drawErrors draws a table of errors, a run a row: the worst first, those at
// saturation below them. Red is simulated too high, blue too low; the colour is
// full at 15 %.
func drawErrors(dir string, runs []validated) (string, error) {
	metrics := errorMetrics()
	keys := make([]string, len(metrics))
	for i, m := range metrics {
		keys[i] = m.key
	}
	runs = worstFirst(runs, keys[:9])
	style := text.Style{Color: color.Black, Font: sans(errorLabel), YAlign: text.YCenter, Handler: plot.DefaultTextHandler}
	left := vg.Length(0)
	for i := range runs {
		left = max(left, style.Width(rowName(&runs[i])))
	}
	left += 10
	width := left + vg.Length(len(metrics))*errorColumn + 2*margin
	height := vg.Length(len(runs))*errorRow + errorHead + 2*margin
	img := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dotsPerInch*3/5)) // a row for each run: half the bytes, and text still reads
	c := draw.Crop(draw.New(img), margin, -margin, margin, -margin)

	head := style
	head.XAlign = text.XCenter
	for j, m := range metrics {
		x := c.Min.X + left + (vg.Length(j)+0.5)*errorColumn
		drawWords(&c, head, x, c.Max.Y-errorHead/2+4, m.title)
	}
	for i := range runs {
		top := c.Max.Y - errorHead - vg.Length(i)*errorRow
		name := style
		if runs[i].Saturated {
			name.Color = color.Gray{0x80}
		}
		c.FillText(name, vg.Point{X: c.Min.X, Y: top - errorRow/2}, rowName(&runs[i]))
		for j, m := range metrics {
			x := c.Min.X + left + vg.Length(j)*errorColumn
			drawCell(&c, head, vg.Rectangle{Min: vg.Point{X: x + 1, Y: top - errorRow + 1}, Max: vg.Point{X: x + errorColumn - 1, Y: top - 1}}, &runs[i], m.key)
		}
	}
	var out bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(&out); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "errors.png")
	return path, writeFile(path, out.Bytes())
}

func rowName(v *validated) string {
	if v.Saturated {
		return v.Run + " (saturated)"
	}
	return v.Run
}

// drawWords writes two words above each other.
func drawWords(c *draw.Canvas, style text.Style, x, y vg.Length, words string) {
	first, second := words, ""
	for i, r := range words {
		if r == ' ' {
			first, second = words[:i], words[i+1:]
		}
	}
	if second == "" {
		c.FillText(style, vg.Point{X: x, Y: y}, first)
		return
	}
	c.FillText(style, vg.Point{X: x, Y: y + 7}, first)
	c.FillText(style, vg.Point{X: x, Y: y - 7}, second)
}

func drawCell(c *draw.Canvas, style text.Style, r vg.Rectangle, v *validated, metric string) {
	e, ok := v.errors[metric]
	if !ok {
		return
	}
	words, fill := "0 live", color.Color(color.RGBA{0xee, 0xdd, 0x88, 0xff})
	if !math.IsNaN(e) {
		words, fill = fmt.Sprintf("%+.1f %%", 100*e), shade(e)
	}
	c.FillPolygon(fill, []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}})
	c.FillText(style, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}, words)
}

// shade is white for no error, red above and blue below.
func shade(e float64) color.Color {
	share := math.Min(1, math.Abs(e)/0.15)
	toward := [3]float64{0xe8, 0x6a, 0x58} // too high
	if e < 0 {
		toward = [3]float64{0x5a, 0x9c, 0xd6}
	}
	at := func(i int) uint8 { return uint8(math.Round(0xfa + share*(toward[i]-0xfa))) }
	return color.RGBA{at(0), at(1), at(2), 0xff}
}
