package answers

import (
	"maps"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// timed reports whether a run has the phases of all its steps. A live run that does not report its
// unsplit time has phases for some steps only.
func timed(s *metrics.Summary) bool {
	_, whole := s.PhaseS[metrics.UnsplitPhase]
	return s.Steps > 0 && len(s.PhaseS) > 0 && (whole || s.Live == nil)
}

// phases draws the phases of the mean step: one bar per row, and one chart per panel.
func (v *view) phases() []doc.Figure {
	f := doc.Figure{Name: "time", Title: "Where the time of a step went"}
	used := map[string]bool{}
	for i := range v.panels {
		c := &doc.Chart{Kind: doc.Bars, Title: v.title(i), Y: "Time per step (ms)"}
		if v.x.varies {
			c.X = v.x.label
		}
		for _, row := range v.panels[i].rows {
			row.runs = slices.DeleteFunc(slices.Clone(row.runs),
				func(s *metrics.Summary) bool { return !timed(s) })
			if len(row.runs) == 0 {
				continue
			}
			group := row.at
			if v.x.varies {
				group = stats.Tick(row.x)
			}
			b := phaseBar(group, row.series, row.runs)
			for _, p := range b.Parts {
				used[p.Name] = used[p.Name] || p.Value > 0
			}
			c.Bars = append(c.Bars, b)
		}
		f.Charts = append(f.Charts, c)
	}
	for _, c := range f.Charts {
		for i := range c.Bars {
			c.Bars[i].Parts = where(c.Bars[i].Parts, func(p *doc.Part) bool { return used[p.Name] })
		}
	}
	f.Charts = where(f.Charts, func(c **doc.Chart) bool { return len((*c).Bars) > 0 && len(used) > 0 })
	return drawable(f)
}

// phaseBar stacks the mean phases of a step of runs.
func phaseBar(group, series string, runs []*metrics.Summary) doc.Bar {
	b := doc.Bar{Group: group, Name: series}
	for _, ph := range papers.Phases() {
		var values []float64
		for i := range runs {
			values = append(values, 1e3*runs[i].PhaseS[ph.Key]/float64(runs[i].Steps))
		}
		p := doc.Part{Name: ph.Name}
		p.Value, p.Sample = doc.Over(values)
		b.Parts = append(b.Parts, p)
	}
	var totals []float64
	for i := range runs {
		sum := 0.0
		for _, key := range slices.Sorted(maps.Keys(runs[i].PhaseS)) { // so that rounding never varies
			sum += runs[i].PhaseS[key]
		}
		totals = append(totals, 1e3*sum/float64(runs[i].Steps))
	}
	_, b.Sample = doc.Over(totals)
	return b
}
