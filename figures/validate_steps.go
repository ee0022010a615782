package figures

import (
	"fmt"
	"image/color"
	"path/filepath"

	"gonum.org/v1/plot/vg"
)

// drawSteps draws the modelled time of every step of a run against the measured one. Points on the
// solid line are priced right. Their numbers are in the folder's steps/.
func drawSteps(dir string, v *validated, formats []string) ([]string, error) {
	decode, mixed := curve{dots: true}, curve{dots: true}
	for _, st := range v.steps {
		if st.live <= 0 || st.model <= 0 {
			continue
		}
		into := &decode
		if st.mixed {
			into = &mixed
		}
		into.points = append(into.points, point{x: 1e3 * st.live, runs: 1, mean: 1e3 * st.model})
	}
	decode.series = fmt.Sprintf("steps that only decode (%d)", len(decode.points))
	mixed.series = fmt.Sprintf("steps with a prefill (%d)", len(mixed.points))
	const equal, near = "measured = modelled", "10 % off"
	steps := []curve{decode, mixed}
	both := union([]span{spanOf(steps, abscissae), spanOf(steps, means)})
	if both.low > both.high {
		return nil, fmt.Errorf("%s: no step to draw", v.Run)
	}
	a := wideLog(both)
	c := chart{title: label(v.System) + ", " + v.where(), x: "Measured step (ms)",
		y: "Modelled step (ms)", axis: a, across: &a}
	for _, k := range []float64{1, 0.9, 1.1} {
		name := near
		if k == 1 {
			name = equal
		}
		from, to := max(a.low, a.low/k), min(a.high, a.high/k)
		c.curves = append(c.curves, curve{series: name, bare: true,
			points: []point{{x: from, mean: k * from}, {x: to, mean: k * to}}})
	}
	for _, one := range steps {
		if len(one.points) > 0 {
			c.curves = append(c.curves, one)
		}
	}
	gray := color.Gray{0x60}
	pg := (&picture{charts: []chart{c}, caption: originOf([]validated{*v}), looks: map[string]look{
		equal:         {color: gray, width: 0.9},
		near:          {color: gray, width: 0.7, dashes: []vg.Length{2, 2.5}},
		decode.series: {color: color.RGBA{0x00, 0x72, 0xb2, 0xff}, marker: circle},
		mixed.series:  {color: color.RGBA{0xd5, 0x5e, 0x00, 0xff}, marker: triangle},
	}}).lay()
	return writeFormats(filepath.Join(dir, "steps-"+fileName(v.Run)), formats, dotsPerInch, pg.width,
		pg.height, pg.paint)
}
