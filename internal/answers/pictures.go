package answers

import (
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// drawn are the metrics that are drawn over the varied quantity, by the names of their files.
var drawn = []struct{ file, key string }{{"ttft", "ttft_mean"}, {"throughput", "throughput"},
	{"tbt", "tbt_mean"}, {"goodput", "good"}}

// Figures draws the runs: latency and throughput over the varied quantity (over time for a single
// run), the phases of step time, and distributions of latencies and time lines from the tables in
// the runs' folders. There are no figures if no run served a request.
func (r *Runs) Figures() (all []doc.Figure, err error) {
	v := r.view()
	if len(v.panels) == 0 {
		return nil, nil
	}
	if rows := v.panels[0].rows; len(v.panels) == 1 && len(rows) == 1 && len(rows[0].runs) == 1 {
		if all, err = oneRun(r.folder(rows[0].runs[0])); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		all = v.overLoads(r.Levels())
	}
	all = append(all, v.phases()...)
	inside, err := r.inside(v)
	if err != nil {
		return nil, err
	}
	all = append(all, inside...)
	ran := r.ran()
	for i := range all {
		f := &all[i]
		f.Numbers = true
		papers.Paint(f.Charts, nil)
		caption := []string{ran, f.Caption, f.Spread("runs")}
		f.Caption = strings.Join(where(caption, func(s *string) bool { return *s != "" }), " ")
	}
	return all, nil
}

// ran returns a sentence about what was run: from the configuration, or from the summaries if no
// configuration describes it.
func (r *Runs) ran() string {
	if len(r.Asked) > 0 {
		return strings.Join(r.Asked, " ")
	}
	of := func(noun string, text func(*sim.Summary) string) string {
		return each(r.Sums, noun, func(s sim.Summary) string { return text(&s) })
	}
	seeds := distinct(r.Sums, func(s *sim.Summary) uint64 { return s.Seed })
	words := []string{of("models", func(s *sim.Summary) string { return s.Model + " on " + s.GPU })}
	if r.Sums[0].Requests > 0 {
		words = append(words, of("numbers of requests",
			func(s *sim.Summary) string { return Count(s.Requests, "request") }))
	}
	return strings.Join(append(words, listSeeds(seeds)), ", ") + "."
}

// overLoads returns one figure per metric, with one chart per panel. Charts of one metric share an
// axis, so that they can be compared. They have bars if x does not vary.
func (v *view) overLoads(levels []string) (all []doc.Figure) {
	for _, of := range drawn {
		m := sim.MetricOf(of.key)
		f := doc.Figure{Name: of.file, Title: "Latency and throughput"}
		for i := range v.panels {
			p := &v.panels[i]
			c := &doc.Chart{Kind: doc.Lines, Title: v.title(i), X: v.x.label, Y: capital(m.Label()),
				LogX: v.x.doubly}
			if c.Lines = p.lines(&m); !v.x.varies {
				stand(c, p.rows[0].at)
			}
			if len(c.Lines)+len(c.Bars) > 0 {
				f.Charts = append(f.Charts, c)
			}
		}
		if len(f.Charts) == 0 {
			continue
		}
		scale(f.Charts, of.key == "ttft_mean", !m.Higher)
		if of.key == "good" {
			f.Caption = strings.TrimPrefix(strings.Join(append(levels, ""), ". "), ". ")
		}
		all = append(all, f)
	}
	return all
}

// scale gives charts one common axis. It is logarithmic if requested, or if small values are best
// and a linear axis would hide them.
func scale(charts []*doc.Chart, log, small bool) {
	var lines []doc.Line
	for _, c := range charts {
		lines = append(lines, c.Lines...)
	}
	log = log || small && farApart(lines, 20, func(p doc.Point) float64 { return p.Y })
	for _, c := range charts {
		c.LogY = log
	}
	doc.Fit(charts...)
}

// capital begins a label with a capital.
func capital(label string) string { return strings.ToUpper(label[:1]) + label[1:] }

// lines returns the series of a panel, in the order of the rows: the mean of a metric at each x.
func (p *panel) lines(m *sim.Metric) (lines []doc.Line) {
	for i := range p.rows {
		row, one := &p.rows[i], doc.Point{X: p.rows[i].x}
		var values []float64
		for _, s := range row.runs {
			if y, known := m.Shown(s); known {
				values = append(values, y)
			}
		}
		if len(values) == 0 {
			continue
		}
		one.Y, one.Sample = doc.Over(values)
		one.Unstable = row.has(warn.UnstableQueue) || row.has(warn.WaitsGrow)
		one.Rejects = row.rejects()
		j := slices.IndexFunc(lines, func(l doc.Line) bool { return l.Name == row.series })
		if j < 0 {
			j, lines = len(lines), append(lines, doc.Line{Name: row.series})
		}
		lines[j].Points = append(lines[j].Points, one)
	}
	return lines
}

// stand converts single-point lines of a chart to bars.
func stand(c *doc.Chart, group string) {
	for _, l := range c.Lines {
		p := &l.Points[0]
		b := doc.Bar{Group: group, Name: l.Name, Sample: p.Sample,
			Parts: []doc.Part{{Name: l.Name, Value: p.Y, Sample: p.Sample}}}
		if doubts := p.Doubts(); doubts != "" {
			b.Note = stats.Digits(p.Y) + ", " + doubts
		}
		c.Bars = append(c.Bars, b)
	}
	c.Kind, c.Lines, c.X = doc.Bars, nil, ""
}
