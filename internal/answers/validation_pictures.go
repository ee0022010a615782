package answers

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// overLive is the picture of a validation: one chart per figure with a goal.
func overLive(r *validate.Report) doc.Figure {
	f := doc.Figure{Name: "over-live", Title: "Simulated over live",
		Caption: "A dot is a run; on the line both are equal. " + servedBy(r) + "."}
	for _, key := range withGoals {
		m := compared(key)
		if c := scatter(r, key, &m); c != nil {
			f.Charts = append(f.Charts, c)
		}
	}
	return f
}

// scatter has one dot per run, simulated over live; nil if no run has both.
func scatter(r *validate.Report, key string, m *metrics.Metric) *doc.Chart {
	dots := []doc.Line{{Name: "below saturation", Color: "#0072b2", Dots: true},
		{Name: "saturated", Color: "#c62f1f", Dots: true}}
	low, high := math.Inf(1), 0.0
	for i := range r.Runs {
		c, has := r.Runs[i].Of(key)
		if !has || c.Live <= 0 || c.Simulated <= 0 {
			continue
		}
		into := &dots[0]
		if r.Runs[i].Saturated {
			into = &dots[1]
		}
		x, y := m.Scale*c.Live, m.Scale*c.Simulated
		into.Points = append(into.Points, doc.Point{X: x, Y: y, Note: r.Runs[i].Run})
		low, high = min(low, x, y), max(high, x, y)
	}
	if high == 0 {
		return nil
	}
	unit := ""
	if m.Unit != "" {
		unit = " (" + m.Unit + ")"
	}
	c := &doc.Chart{Title: m.Title(), X: "live" + unit, Y: "simulated" + unit,
		LogX: true, LogY: true}
	for _, l := range dots {
		slices.SortFunc(l.Points, func(a, b doc.Point) int { return cmp.Compare(a.X, b.X) })
	}
	c.Lines = append(drawnLines(dots), doc.Line{Name: "equal",
		Color: "#7a7a7a", Dashed: true, Bare: true,
		Points: []doc.Point{{X: low, Y: low}, {X: high, Y: high}}})
	return c
}

// servedBy describes the runs: device, model and card, trace, number of requests, and seeds.
func servedBy(r *validate.Report) string {
	type run = validate.ValidatedRun
	runs := r.Runs
	words := []string{r.Device,
		each(runs, "models", func(v run) string { return v.Model + " simulated on " + v.Simulated.GPU }),
		each(runs, "traces", func(v run) string { return v.Trace }),
		each(runs, "numbers of requests",
			func(v run) string { return Count(v.Live.Requests, "request") }),
		each(runs, "seeds", func(v run) string { return fmt.Sprint("seed ", v.Seed) })}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}
