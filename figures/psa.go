package figures

import (
	"cmp"
	"slices"
)

// psaFig2 is the share of query tokens that find enough attention in so many
// blocks, a curve a layer.
func psaFig2(folders []string) (picture, error) {
	t, err := readTable(folders[0])
	if err != nil {
		return picture{}, err
	}
	type key struct {
		series string
		budget float64
	}
	values := map[key][]float64{}
	var all []curve
	for row := range t.rows {
		dataset, err1 := t.text(row, "dataset")
		layer, err2 := t.text(row, "layer")
		budget, err3 := t.number(row, "budget_blocks")
		share, err4 := t.number(row, "tokens_share")
		if err := first(err1, err2, err3, err4); err != nil {
			return picture{}, err
		}
		k := key{dataset + " " + layer, budget}
		i := slices.IndexFunc(all, func(c curve) bool { return c.series == k.series })
		if i < 0 {
			i = len(all)
			all = append(all, curve{series: k.series})
		}
		if len(values[k]) == 0 {
			all[i].points = append(all[i].points, point{x: budget})
		}
		values[k] = append(values[k], 100*share)
	}
	for _, c := range all {
		for i, q := range c.points {
			c.points[i] = summarise(q.x, values[key{c.series, q.x}], false)
		}
		slices.SortFunc(c.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	}
	return picture{charts: []chart{{
		x: "Budget (blocks)", y: "Query Tokens (%)", curves: all,
		ticks: []float64{0, 50, 100, 150, 200, 250, 300},
		axis:  axis{0, 104, false},
	}}}, nil
}

// psaFig5 is the KV that each system attends to at the target of the accuracy
// proxy, a panel a model and a group of bars a set.
func psaFig5(folders []string) (picture, error) {
	t, err := readTable(folders[0])
	if err != nil {
		return picture{}, err
	}
	type key struct{ model, dataset, system string }
	values := map[key][]float64{}
	var order []key
	for row := range t.rows {
		model, err1 := t.text(row, "model")
		dataset, err2 := t.text(row, "dataset")
		system, err3 := t.text(row, "system")
		share, err4 := t.number(row, "kv_share")
		if err := first(err1, err2, err3, err4); err != nil {
			return picture{}, err
		}
		k := key{model, dataset, system}
		if len(values[k]) == 0 {
			order = append(order, k)
		}
		values[k] = append(values[k], 100*share)
	}
	pic := picture{wide: 1.5, looks: map[string]look{
		"vllm-sparse": looks()[1], "infinigen": looks()[2], "psa": looks()[3], "psa-per-head": looks()[6],
	}}
	for _, k := range order {
		n := len(pic.charts)
		if n == 0 || pic.charts[n-1].title != modelLabel(k.model) {
			pic.charts = append(pic.charts, chart{title: modelLabel(k.model), y: "KV attended to, by proxy (%)"})
			n++
		}
		c := &pic.charts[n-1]
		if m := len(c.groups); m == 0 || c.groups[m-1].label != k.dataset {
			c.groups = append(c.groups, group{label: k.dataset})
		}
		g := &c.groups[len(c.groups)-1]
		g.bars = append(g.bars, bar{parts: []part{{k.system, summarise(0, values[k], false)}}})
	}
	for i := range pic.charts {
		pic.charts[i].axis = linear(barSpan(pic.charts[i].groups))
	}
	return pic, nil
}
