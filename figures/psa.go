package figures

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// psaFig2 is the share of query tokens that find enough attention in so many
// blocks, a curve a layer.
func psaFig2(folders []string) (picture, error) {
	cells, err := readShares(folders[0], "tokens_share", "dataset", "layer", "budget_blocks")
	if err != nil {
		return picture{}, err
	}
	var all []curve
	for _, c := range cells {
		budget, err := strconv.ParseFloat(c.keys[2], 64)
		if err != nil {
			return picture{}, fmt.Errorf("%s: budget_blocks = %q: want a number", folders[0], c.keys[2])
		}
		series := c.keys[0] + " " + c.keys[1]
		i := slices.IndexFunc(all, func(c curve) bool { return c.series == series })
		if i < 0 {
			i = len(all)
			all = append(all, curve{series: series})
		}
		all[i].points = append(all[i].points, summarise(budget, c.percents, false))
	}
	for _, c := range all {
		slices.SortFunc(c.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	}
	return picture{charts: []chart{{
		x: "Budget (blocks)", y: "Query Tokens (%)", curves: all,
		ticks: []float64{0, 50, 100, 150, 200, 250, 300},
		axis:  axis{0, 104, false},
		most:  100,
	}}}, nil
}

// psaFig5 is the KV that each system attends to at the target of the accuracy
// proxy, a panel a model and a group of bars a set.
func psaFig5(folders []string) (picture, error) {
	cells, err := readShares(folders[0], "kv_share", "model", "dataset", "system")
	if err != nil {
		return picture{}, err
	}
	pic := picture{wide: 1.5, looks: map[string]look{
		"vLLM-sparse": looks()[1], "InfiniGen": looks()[2], "PSA": looks()[3],
		"PSA, per head": looks()[6],
	}}
	for _, cell := range cells {
		model, dataset, system := cell.keys[0], cell.keys[1], cell.keys[2]
		n := len(pic.charts)
		if n == 0 || pic.charts[n-1].title != modelLabel(model) {
			pic.charts = append(pic.charts,
				chart{title: modelLabel(model), y: "KV attended to, by proxy (%)", most: 100})
			n++
		}
		c := &pic.charts[n-1]
		if m := len(c.groups); m == 0 || c.groups[m-1].label != dataset {
			c.groups = append(c.groups, group{label: dataset})
		}
		g := &c.groups[len(c.groups)-1]
		g.bars = append(g.bars,
			bar{parts: []part{{selector(system), summarise(0, cell.percents, false)}}})
	}
	for i := range pic.charts {
		pic.charts[i].axis = linear(barSpan(pic.charts[i].groups))
	}
	return pic, nil
}

// selector is what the legend calls a system of the accuracy study.
func selector(system string) string {
	switch system {
	case "infinigen":
		return "InfiniGen"
	case "psa":
		return "PSA"
	case "psa-per-head":
		return "PSA, per head"
	}
	return label(system)
}

// shares are what rows of a table have in a column of shares, over the rows that
// agree in some others.
type shares struct {
	keys     []string
	percents []float64
}

// readShares reads them in the order in which the table first has their keys.
func readShares(folder, column string, keys ...string) ([]shares, error) {
	t, err := readTable(folder)
	if err != nil {
		return nil, err
	}
	var all []shares
	at := map[string]int{}
	for row := range t.rows {
		var texts []string
		for _, k := range keys {
			texts = append(texts, t.text(row, k))
		}
		share := t.number(row, column)
		name := strings.Join(texts, "\x00")
		i, known := at[name]
		if !known {
			i, at[name] = len(all), len(all)
			all = append(all, shares{keys: texts})
		}
		all[i].percents = append(all[i].percents, 100*share)
	}
	return all, t.err
}
