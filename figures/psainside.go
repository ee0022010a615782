package figures

import "strconv"

// psaInside is TBT and loads of SparseServe with top-k and with PSA's threshold
// against the request rate, at equal accuracy by the proxy, and their goodput.
func psaInside(folders []string) (picture, error) {
	name := func(system string) string {
		if system == "sparseserve" {
			return "SparseServe, top-k"
		}
		return label(system)
	}
	pic := picture{}
	for _, folder := range folders {
		if hasFile(folder, "summary.json") {
			runs, err := Read(folder)
			if err != nil {
				return picture{}, err
			}
			pic.charts = append(pic.charts, ratePanels(runs, func(r *Run) string { return name(r.System) },
				psaMetrics()[1:3]).charts...)
			continue
		}
		plan, err := readPlan(folder)
		if err != nil {
			return picture{}, err
		}
		g := group{label: modelLabel(plan[0].Model)}
		for i := range plan {
			c := &plan[i]
			g.bars = append(g.bars, bar{series: name(c.System), note: decimals(c.Goodput, 3),
				parts: []part{{name(c.System), c.capacity()}}})
		}
		goodput := chart{title: "(c) Goodput", y: "Goodput (req/s)", groups: []group{g}}
		goodput.axis = linear(barSpan(goodput.groups))
		pic.charts = append(pic.charts, goodput)
	}
	return pic, nil
}

// psaParts is what pipelined rounds and one pool for all layers buy.
func psaParts(folders []string) (picture, error) {
	runs, err := Read(folders[0])
	if err != nil {
		return picture{}, err
	}
	series := func(r *Run) string {
		pipelined, _ := r.Settings["system.pipelined"].(bool)
		switch {
		case r.text("system.pool") == "per-layer":
			return "One pool a layer"
		case !pipelined:
			return "Rounds not pipelined"
		}
		return "PSA: pipelined, one pool"
	}
	m := psaMetrics()
	return groupPanels(runs, series, []psaMetric{m[0], m[1], m[3]}), nil
}

// psaMetric is one panel.
type psaMetric struct {
	title, label string
	value        func(*Run) float64
}

func psaMetrics() []psaMetric {
	return []psaMetric{
		{"Throughput", "Throughput (tokens/s)", throughput},
		{"TBT", "Mean TBT (ms)", func(r *Run) float64 { return 1e3 * r.TBT.Mean }},
		{"KV blocks loaded", "KV blocks loaded per iteration", blocksLoaded},
		{"Misses", "Selected blocks missing (%)", func(r *Run) float64 { return 100 * (1 - r.HitRatio) }},
	}
}

// ratePanels draws each metric against the rate.
func ratePanels(runs []Run, series func(*Run) string, metrics []psaMetric) picture {
	pic := picture{}
	for i, m := range metrics {
		c := chart{title: panelTitle(i, len(metrics), m.title), x: "Req Rate (req/s)", y: m.label,
			curves: curves(runs, series, rate, m.value)}
		c.axis = fitted(c.curves)
		pic.charts = append(pic.charts, c)
	}
	return pic
}

// groupPanels draws each metric as a group of bars a rate.
func groupPanels(runs []Run, series func(*Run) string, metrics []psaMetric) picture {
	pic := picture{}
	for i, m := range metrics {
		c := chart{title: panelTitle(i, len(metrics), m.title), x: "Req Rate (req/s)", y: m.label}
		for _, v := range curves(runs, series, rate, m.value) {
			for _, q := range v.points {
				name := strconv.FormatFloat(q.x, 'g', -1, 64)
				at := len(c.groups)
				for j := range c.groups {
					if c.groups[j].label == name {
						at = j
					}
				}
				if at == len(c.groups) {
					c.groups = append(c.groups, group{label: name})
				}
				c.groups[at].bars = append(c.groups[at].bars,
					bar{series: v.series, parts: []part{{v.series, q}}})
			}
		}
		c.axis = linear(barSpan(c.groups))
		pic.charts = append(pic.charts, c)
	}
	return pic
}
