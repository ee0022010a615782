package answers

import (
	"maps"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim"
)

// timed reports whether a run has the phases of all its steps. A live run that does not report its
// unsplit time has phases for some steps only.
func timed(s *shown) bool {
	_, whole := s.PhaseS[sim.UnsplitPhase]
	return s.Steps > 0 && len(s.PhaseS) > 0 && (whole || s.Live == nil)
}

// phases draws the phases of the mean step: one bar per series and x, and one chart per panel.
func (v *view) phases() []doc.Figure {
	f := doc.Figure{Name: "time", Title: "Where the time of a step went"}
	for i := range v.panels {
		p := panel{runs: where(v.panels[i].runs, timed)}
		c := &doc.Chart{Kind: doc.Bars, Title: v.title(i), X: v.x.label, Y: "Time per step (ms)"}
		if !v.x.varies {
			c.X = ""
		}
		parts := slices.DeleteFunc(papers.Phases(), func(ph papers.Phase) bool {
			return !slices.ContainsFunc(v.all, func(s shown) bool {
				return s.Completed > 0 && timed(&s) && s.PhaseS[ph.Key] > 0
			})
		})
		for _, at := range p.values() {
			group := stats.Tick(at)
			if !v.x.varies {
				group = v.all[0].load
			}
			for _, series := range p.series() {
				runs := p.at(at, series)
				if len(runs) > 0 && len(parts) > 0 {
					c.Bars = append(c.Bars, phaseBar(group, series, runs, parts))
				}
			}
		}
		if len(c.Bars) > 0 {
			f.Charts = append(f.Charts, c)
		}
	}
	return drawable(f)
}

// phaseBar stacks the mean phases of a step of runs.
func phaseBar(group, series string, runs []shown, parts []papers.Phase) doc.Bar {
	b := doc.Bar{Group: group, Name: series}
	for _, ph := range parts {
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
