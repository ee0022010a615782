package figures

import (
	"math"
	"slices"
)

// metric is what one figure shows against the request rate.
type metric struct {
	file  string // name without extension
	label string // axis label with its unit
	value func(*Run) float64
	log   bool // spans orders of magnitude: always on a logarithmic axis
	small bool // the smaller the better: on one where a linear axis would hide the small
}

// metrics are Figs. 10, 11 and 12 of the SparseServe paper.
func metrics() []metric {
	return []metric{
		{"ttft", "Mean TTFT (s)", func(r *Run) float64 { return r.TTFT.Mean }, true, true},
		{"throughput", "Throughput (tokens/s)", throughput, false, false},
		{"tbt", "Mean TBT (ms)", func(r *Run) float64 { return 1e3 * r.TBT.Mean }, false, true},
	}
}

// goodput is drawn of runs with a service level for requests.
func goodput() metric {
	return metric{"goodput", "Goodput (req/s within SLO)", func(r *Run) float64 {
		if r.RequestGoodput == nil {
			return math.NaN()
		}
		return *r.RequestGoodput
	}, false, false}
}

func hasGoodput(runs []Run) bool {
	return slices.ContainsFunc(runs,
		func(r Run) bool { return r.Completed > 0 && r.RequestGoodput != nil })
}

func throughput(r *Run) float64 { return r.ThroughputTokS }

// picture draws a metric of every panel against x. All panels have one axis, so that they
// can be compared, logarithmic when one needs it; where x does not vary, they have bars.
func (m *metric) picture(ps []panel, x abscissa) picture {
	pic := picture{file: m.file}
	var all []curve
	for i, p := range ps {
		c := chart{
			title:  panelTitle(i, len(ps), p.name(ps)),
			x:      x.label,
			y:      m.label,
			curves: curves(p.runs, bySystem, x.of, m.value),
			doubly: x.doubly,
		}
		all = append(all, c.curves...)
		pic.charts = append(pic.charts, c)
	}
	shared := fitted(all)
	if low := spanOf(all, means).low; m.log || m.small && shared.high > 20*low {
		shared = logarithmic(all)
	}
	for i := range pic.charts {
		c := &pic.charts[i]
		if c.axis = shared; !x.varies {
			c.standing(x)
		}
	}
	if !x.varies {
		pic.cutBars()
	}
	return pic
}

// standing makes bars of curves of one point.
func (c *chart) standing(x abscissa) {
	g := group{label: c.x}
	if x.name != "" {
		g.label = x.name
	}
	for _, one := range c.curves {
		for _, q := range one.points {
			note := digits(q.mean)
			if q.unstable {
				note += ", unstable"
			}
			if q.rejects {
				note += ", rejects"
			}
			g.bars = append(g.bars, bar{series: one.series, note: note, parts: []part{{one.series, q}}})
		}
	}
	c.curves, c.groups, c.x = nil, []group{g}, ""
}

// cutBars gives all charts of bars one axis from 0.
func (p *picture) cutBars() {
	var all []group
	for _, c := range p.charts {
		all = append(all, c.groups...)
	}
	a := linear(cut(barSpan(all), all))
	a.high = roomForNotes(all, a.high*1.04)
	for i := range p.charts {
		p.charts[i].axis = a
	}
}
