package figures

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// errorMetrics are the columns of the chart of errors.
func errorMetrics() []struct{ key, title string } {
	return []struct{ key, title string }{
		{"ttft_mean_s", "TTFT mean"}, {"ttft_p50_s", "TTFT P50"}, {"ttft_p99_s", "TTFT P99"},
		{"tbt_mean_s", "TBT mean"}, {"tbt_p50_s", "TBT P50"}, {"tbt_p99_s", "TBT P99"},
		{"throughput_tok_s", "throughput"}, {"blocks_loaded_per_step", "blocks loaded"},
		{"hit_ratio", "hit ratio"}, {"steps", "steps"},
		{"step_decode_mean_s", "decode step"}, {"step_mixed_mean_s", "mixed step"},
	}
}

// shownMetrics are those that some run has.
func shownMetrics(runs []validated) (shown []struct{ key, title string }) {
	for _, m := range errorMetrics() {
		for i := range runs {
			if _, has := runs[i].errors[m.key]; has {
				shown = append(shown, m)
				break
			}
		}
	}
	return shown
}

// Sizes of the chart of errors.
const (
	errorRow    = 19 // points
	errorColumn = 58
	errorHead   = 44
	errorFoot   = 40
	errorLabel  = 12 // text
)

// fullShade is the error from which on a cell has the full colour.
const fullShade = 0.15

// drawErrors draws a table of errors, a run a row: the worst first, those at
// saturation below them. Red is simulated too high, blue too low; the scale of colours
// below the table is full at 15 %. What no run has is no column.
func drawErrors(dir string, runs []validated, formats []string) ([]string, error) {
	metrics := errorMetrics()
	keys := make([]string, len(metrics))
	for i, m := range metrics {
		keys[i] = m.key
	}
	runs = worstFirst(runs, keys[:9])
	metrics = shownMetrics(runs)
	style := text.Style{Color: color.Black, Font: sans(errorLabel), YAlign: text.YCenter,
		Handler: plot.DefaultTextHandler}
	names := rowNames(runs)
	left := vg.Length(0)
	for _, name := range names {
		left = max(left, style.Width(name))
	}
	left += 10
	width := left + vg.Length(len(metrics))*errorColumn + 2*margin
	height := vg.Length(len(runs))*errorRow + errorHead + errorFoot + 2*margin
	return writeFormats(filepath.Join(dir, "errors"), formats, tableDots, width, height,
		func(canvas draw.Canvas) {
			canvas.SetColor(color.White)
			canvas.Fill(canvas.Rectangle.Path())
			c := draw.Crop(canvas, margin, -margin, margin, -margin)
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
				c.FillText(name, vg.Point{X: c.Min.X, Y: top - errorRow/2}, names[i])
				for j, m := range metrics {
					x := c.Min.X + left + vg.Length(j)*errorColumn
					drawCell(&c, head, vg.Rectangle{Min: vg.Point{X: x + 1, Y: top - errorRow + 1},
						Max: vg.Point{X: x + errorColumn - 1, Y: top - 1}}, &runs[i], m.key)
				}
			}
			foot := "Simulated against measured"
			if gpu := runs[0].GPU; gpu != "" {
				foot += ", " + gpuLabel(gpu)
			}
			c.FillText(style, vg.Point{X: c.Min.X, Y: c.Min.Y + 23}, foot)
			c.FillText(captionStyle(), c.Min, originOf(runs))
			drawScale(&c, head, c.Min.X+left, vg.Length(len(metrics))*errorColumn)
		})
}

// drawScale draws the scale of colours at the bottom.
func drawScale(c *draw.Canvas, style text.Style, left, width vg.Length) {
	bar := width / 2
	x, low := left+(width-bar)/2, c.Min.Y+18
	full := fmt.Sprintf("%.0f %%", 100*fullShade)
	drawShades(c, vg.Point{X: x, Y: low}, bar,
		func(share float64) color.Color { return shade(fullShade * share) }, "-"+full, "0 %", "+"+full)
	style.XAlign = text.XRight
	c.FillText(style, vg.Point{X: x - 12, Y: low + 5}, "simulated lower")
	style.XAlign = text.XLeft
	c.FillText(style, vg.Point{X: x + bar + 12, Y: low + 5}, "simulated higher")
}

// rowNames names runs for people: "SparseServe, LWM-7B, 2.4 req/s, lookup gpu". Where two
// would have one name, the run's own name is after it.
func rowNames(runs []validated) []string {
	names := make([]string, len(runs))
	count := map[string]int{}
	for i := range runs {
		names[i] = rowName(&runs[i])
		count[names[i]]++
	}
	for i := range runs {
		if count[names[i]] > 1 {
			names[i] += " (" + runs[i].Run + ")"
		}
		if runs[i].Saturated {
			names[i] += ", saturated"
		}
	}
	return names
}

func rowName(v *validated) string {
	return label(v.System) + ", " + v.loadName()
}

// where is a run's load and card.
func (v *validated) where() string {
	name := v.loadName()
	if v.GPU != "" {
		name += ", " + gpuLabel(v.GPU)
	}
	return name
}

// originOf is which requests runs served: traces, how many requests, seeds.
func originOf(runs []validated) string {
	var traces, counts, seeds []string
	for i := range runs {
		v := &runs[i]
		if v.Trace != "" {
			traces = append(traces, v.Trace)
		}
		if v.Requests > 0 {
			counts = append(counts, strconv.Itoa(v.Requests))
		}
		seeds = append(seeds, strconv.FormatUint(v.Seed, 10))
	}
	var words []string
	if all := unique(traces); len(all) > 0 {
		words = append(words, list(all))
	}
	if all := unique(counts); len(all) > 0 {
		words = append(words, list(all)+" requests")
	}
	return strings.Join(append(words, seedsText(unique(seeds))), ", ")
}

// arrivals are a run's rate or clients.
func (v *validated) arrivals() string {
	return loadName(&Run{Rate: v.Rate, Concurrency: v.Concurrency, trace: v.Trace})
}

// loadName is a run's model, arrivals and what else axes set of its load.
func (v *validated) loadName() string {
	var words []string
	if v.Model != "" {
		words = append(words, modelLabel(v.Model))
	}
	words = append(words, v.arrivals())
	for _, word := range strings.Fields(v.Variant) {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "model" {
			continue
		}
		switch value {
		case "true":
			words = append(words, setting(key, true))
		case "false":
			words = append(words, setting(key, false))
		default:
			text, unit := unitOf(key)
			words = append(words, strings.TrimSpace(text+" "+value+" "+unit))
		}
	}
	return strings.Join(words, ", ")
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
		words, fill = strings.Replace(fmt.Sprintf("%+.1f %%", 100*e), "-0.0", "+0.0", 1), shade(e)
	}
	c.FillPolygon(fill, []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}})
	c.FillText(style, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}, words)
}

// shade is white for no error, red above and blue below.
func shade(e float64) color.Color {
	share := math.Min(1, math.Abs(e)/fullShade)
	toward := [3]float64{0xe8, 0x6a, 0x58} // too high
	if e < 0 {
		toward = [3]float64{0x5a, 0x9c, 0xd6}
	}
	at := func(i int) uint8 { return uint8(math.Round(0xfa + share*(toward[i]-0xfa))) }
	return color.RGBA{at(0), at(1), at(2), 0xff}
}
