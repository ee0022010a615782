package figures

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Series of a scatter of steps.
const (
	decodeSteps = "steps that only decode"
	mixedSteps  = "steps with a prefill"
)

// drawSteps draws the modelled time of every step of a run against the measured
// one. Points on the diagonal are priced right; the dotted lines are 10 % off.
func drawSteps(dir string, v *validated, formats []string) ([]string, error) {
	kinds := []struct {
		name string
		look look
	}{
		{decodeSteps, look{color: color.NRGBA{0x00, 0x72, 0xb2, 0x90}, marker: circle}},
		{mixedSteps, look{color: color.NRGBA{0xd5, 0x5e, 0x00, 0x90}, marker: triangle}},
	}
	s := union(nil)
	for _, st := range v.steps {
		for _, t := range []float64{st.live, st.model} {
			if t > 0 {
				s = union([]span{s, {1e3 * t, 1e3 * t}})
			}
		}
	}
	if math.IsInf(s.low, 0) {
		return nil, fmt.Errorf("%s: no step to draw", v.Run)
	}
	both := axis{s.low, s.high, s.high > 5*s.low}
	if both.log {
		both.low, both.high = s.low/1.15, s.high*1.15
	} else {
		pad := math.Max(0.05*(s.high-s.low), 0.05*s.high)
		both.low, both.high = math.Max(0, s.low-pad), s.high+pad
	}

	title := label(v.System) + ", " + v.where()
	plt := newPlot(&chart{title: title, x: "Measured step (ms)", y: "Modelled step (ms)",
		axis: both}, nil)
	width := vg.Length(panelHeight * 1.15)
	fit(&plt.Title.TextStyle, 0.92*width, title)
	plt.X.Min, plt.X.Max = both.of(both.low), both.of(both.high)
	plt.X.Tick.Marker = both
	plt.Add(diagonal{both})
	var entries []entry
	for _, k := range kinds {
		points := scatter{axis: both, look: k.look}
		for _, st := range v.steps {
			if st.mixed == (k.name == mixedSteps) && st.live > 0 && st.model > 0 {
				points.at = append(points.at, [2]float64{1e3 * st.live, 1e3 * st.model})
			}
		}
		if len(points.at) > 0 {
			plt.Add(points)
			entries = append(entries, entry{fmt.Sprintf("%s (%d)", k.name, len(points.at)), k.look, false,
				markerSample})
		}
	}

	entries = append(entries,
		entry{"10 % off", look{color: tolerance.Color, dashes: tolerance.Dashes, width: tolerance.Width},
			false, bareSample})

	origin := originOf([]validated{*v})
	return writeFormats(filepath.Join(dir, "steps-"+fileName(v.Run)), formats, dotsPerInch, width,
		width, func(canvas draw.Canvas) {
			all := draw.Crop(canvas, margin, -margin, margin, -margin)
			rows := legendRows(entries, all.Max.X-all.Min.X)
			drawLegend(all, rows)
			drawCaption(all, []string{origin})
			plt.Draw(draw.Crop(all, 0, -margin, captionLine+margin/2, -legendOf(rows)))
		})
}

// scatter draws small markers.
type scatter struct {
	axis
	look
	at [][2]float64
}

func (s scatter) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	for _, p := range s.at {
		center := vg.Point{X: x(s.of(p[0])), Y: y(s.of(p[1]))}
		outline := s.marker(2.2)
		for i := range outline {
			outline[i] = outline[i].Add(center)
		}
		c.FillPolygon(s.color, outline)
	}
}

// tolerance is the line of what is 10 % off.
var tolerance = draw.LineStyle{Color: color.Gray{0x60}, Width: 0.7, Dashes: []vg.Length{2, 2.5}}

// diagonal draws where both are the same, and 10 % to either side.
type diagonal struct{ axis }

func (d diagonal) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	for _, k := range []float64{0.9, 1, 1.1} {
		style := draw.LineStyle{Color: color.Gray{0x60}, Width: 0.9}
		if k != 1 {
			style = tolerance
		}
		from, to := math.Max(d.low, d.low/k), math.Min(d.high, d.high/k) // straight on both kinds of axes
		if from >= to {
			continue
		}
		line := []vg.Point{{X: x(d.of(from)), Y: y(d.of(k * from))}, {X: x(d.of(to)), Y: y(d.of(k * to))}}
		c.StrokeLines(style, line)
	}
}
