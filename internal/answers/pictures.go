package answers

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/metrics"
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
	for i := range all {
		f := &all[i]
		papers.Paint(f.Charts, nil)
		caption := append(slices.Clone(r.Asked), f.Caption, f.Spread("runs"))
		f.Caption = strings.Join(where(caption, func(s *string) bool { return *s != "" }), " ")
	}
	return all, nil
}

// overLoads returns one figure per metric, with one chart per panel. Charts of one metric share an
// axis, so that they can be compared. They have bars if x does not vary.
func (v *view) overLoads(levels []string) (all []doc.Figure) {
	for _, of := range drawn {
		m := metrics.Of(of.key)
		f := doc.Figure{Name: of.file, Title: "Latency and throughput"}
		for i := range v.panels {
			p := &v.panels[i]
			c := &doc.Chart{Title: v.title(i), X: v.x.label, Y: capital(m.Label()),
				LogX: v.x.doubly}
			if p.lines(c, &m); !v.x.varies {
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
			for _, c := range f.Charts {
				c.Y = "Requests within SLO, each by itself (req/s)"
			}
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

// lines draws the series of a panel, in the order of the rows: the mean of a metric at each x.
func (p *panel) lines(c *doc.Chart, m *metrics.Metric) {
	for i := range p.rows {
		row, one := &p.rows[i], doc.Point{X: p.rows[i].x}
		values := row.values(m)
		if len(values) == 0 {
			continue
		}
		one.Y, one.Sample = doc.Over(values)
		unstable, grows := row.queue()
		one.Caveats = doc.Caveats{Unstable: unstable, Grows: grows, Rejects: row.rejects()}
		l := c.Line(row.series)
		l.Points = append(l.Points, one)
	}
}

// stand converts single-point lines of a chart to bars.
func stand(c *doc.Chart, group string) {
	for _, l := range c.Lines {
		p := &l.Points[0]
		b := doc.Bar{Group: group, Name: l.Name, Sample: p.Sample,
			Parts: []doc.Part{{Name: l.Name, Value: p.Y, Sample: p.Sample}}}
		b.Doubt()
		c.Bars = append(c.Bars, b)
	}
	c.Lines, c.X = nil, ""
}

// view arranges the rows of runs for pictures: one panel per model and card, over the varied
// quantity.
type view struct {
	panels []panel
	x      abscissa
}

// panel holds the rows of one model on one card whose runs served requests, by ascending x.
type panel struct {
	model, gpu string
	rows       []runRow
}

// abscissa is the x quantity of pictures: the load, or a key.
type abscissa struct {
	key    string // "" for the load
	label  string // with its unit
	doubly bool   // in powers of two
	varies bool
}

func (r *Runs) view() *view {
	axes := r.axes()
	rows := r.rows(axes)
	for i := range rows {
		rows[i].runs = slices.DeleteFunc(rows[i].runs,
			func(s *metrics.Summary) bool { return s.Completed == 0 })
	}
	rows = where(rows, func(row *runRow) bool { return len(row.runs) > 0 })
	v := &view{x: r.abscissa(rows, axes)}
	for i := range rows {
		row := &rows[i]
		first := row.runs[0]
		row.series, row.at = papers.SystemName(first.System), row.load.words(r.Unit)
		if first.Replicas > 1 && v.x.key != replicasKey {
			row.series += fmt.Sprint(" x", first.Replicas)
		}
		row.series += settingsText(row.shown, axes, v.x.key, "model", "gpu")
		if v.x.key != "" {
			row.at = config.KeyName(v.x.key) + "=" + stats.Tick(row.x)
		}
	}
	slices.SortStableFunc(rows, func(a, b runRow) int { return cmp.Compare(a.x, b.x) })
	for _, p := range distinct(rows, func(row *runRow) [2]string {
		return [2]string{row.runs[0].Model, row.runs[0].GPU}
	}) {
		v.panels = append(v.panels, panel{p[0], p[1], where(rows, func(row *runRow) bool {
			return row.runs[0].Model == p[0] && row.runs[0].GPU == p[1]
		})})
	}
	return v
}

const replicasKey = "replicas"

// abscissa chooses the x quantity and sets the x of all rows: the load or, if that does not vary,
// the number that axes or fleets set to the most values.
func (r *Runs) abscissa(rows []runRow, axes []string) abscissa {
	x, most := abscissa{label: "Rate (" + Short(r.Unit) + ")"}, 1
	closed := slices.ContainsFunc(rows, func(row runRow) bool { return row.load.clients > 0 })
	if closed {
		x.label = "Concurrency (clients)"
	}
	try := func(key, label string, of func(*runRow) (float64, error)) {
		values := make([]float64, len(rows))
		for i := range rows {
			var err error
			if values[i], err = of(&rows[i]); err != nil {
				return // a word, or not set
			}
		}
		all := slices.Compact(slices.Sorted(slices.Values(values)))
		if len(all) <= most {
			return
		}
		for i := range rows {
			rows[i].x = values[i]
		}
		most = len(all)
		x = abscissa{key, label, (key != "" || closed) && all[0] > 0 && all[most-1] >= 8*all[0], true}
	}
	try("", x.label, func(row *runRow) (float64, error) {
		return max(float64(row.load.clients), row.load.rate), nil
	})
	if x.varies {
		return x
	}
	try(replicasKey, "Replicas", func(row *runRow) (float64, error) {
		return float64(max(1, row.runs[0].Replicas)), nil
	})
	for i, key := range axes {
		try(key, config.KeyName(key), func(row *runRow) (float64, error) {
			return strconv.ParseFloat(row.set[i], 64)
		})
	}
	return x
}

// title returns a panel's title if there are several panels: its model, its card, or both.
func (v *view) title(i int) string {
	p := &v.panels[i]
	models, cards := false, false
	for j := range v.panels {
		models = models || v.panels[j].model != p.model
		cards = cards || v.panels[j].gpu != p.gpu
	}
	name := papers.ModelName(p.model)
	switch {
	case len(v.panels) == 1:
		return ""
	case cards && !models:
		name = path.Base(p.gpu)
	case cards:
		name += " on " + path.Base(p.gpu)
	}
	return fmt.Sprintf("(%c) %s", 'a'+i, name)
}
