package figures

// metric is what one figure shows against the request rate.
type metric struct {
	file  string // name without extension
	label string // axis label with its unit
	value func(*Run) float64
	log   bool // spans orders of magnitude: always on a logarithmic axis
}

// metrics are Figs. 10, 11 and 12 of the SparseServe paper.
func metrics() []metric {
	return []metric{
		{"ttft", "Mean TTFT (s)", func(r *Run) float64 { return r.TTFT.Mean }, true},
		{"throughput", "Throughput (tokens/s)", throughput, false},
		{"tbt", "Mean TBT (ms)", func(r *Run) float64 { return 1e3 * r.TBT.Mean }, false},
	}
}

func throughput(r *Run) float64   { return r.ThroughputTokS }
func blocksLoaded(r *Run) float64 { return r.BlocksLoadedPerStep }

// picture draws a metric of every model against the load. All panels are
// logarithmic when one needs it.
func (m *metric) picture(ps []panel) picture {
	pic := picture{file: m.file}
	log := m.log
	for i, p := range ps {
		c := chart{
			title:  panelTitle(i, len(ps), modelLabel(p.model)),
			x:      p.loadLabel(),
			y:      m.label,
			curves: curves(p.runs, bySystem, load, m.value),
		}
		s := spanOf(c.curves, means)
		log = log || s.high > 20*s.low
		pic.charts = append(pic.charts, c)
	}
	for i := range pic.charts {
		c := &pic.charts[i]
		if c.axis = linear(spanOf(c.curves, intervals)); log {
			c.axis = logarithmic(c.curves)
		}
	}
	return pic
}
