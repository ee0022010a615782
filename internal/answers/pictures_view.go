package answers

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim"
)

// view arranges the rows of runs for pictures: one panel per model and card, over the varied
// quantity.
type view struct {
	panels []panel
	x      abscissa
}

// panel holds the rows of one model on one card whose runs served requests, by ascending x.
type panel struct {
	model, gpu string
	rows       []shownRow
}

// shownRow is a row as pictures show it.
type shownRow struct {
	runRow
	series string
	x      float64
	at     string // x in words
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
	var rows []shownRow
	for _, row := range r.rows(axes) {
		row.runs = slices.DeleteFunc(row.runs, func(s *sim.Summary) bool { return s.Completed == 0 })
		if len(row.runs) > 0 {
			rows = append(rows, shownRow{runRow: row})
		}
	}
	v := &view{x: r.abscissa(rows, axes)}
	for i := range rows {
		row := &rows[i]
		first := row.runs[0]
		row.series, row.at = papers.SystemName(first.System), row.load.words(r.Unit)
		if first.Replicas > 1 && v.x.key != replicasKey {
			row.series += fmt.Sprint(" x", first.Replicas)
		}
		row.series += settingsText(row.set, axes, v.x.key, "model", "gpu")
		if v.x.key != "" {
			row.at = config.KeyName(v.x.key) + "=" + stats.Tick(row.x)
		}
	}
	slices.SortStableFunc(rows, func(a, b shownRow) int { return cmp.Compare(a.x, b.x) })
	for _, p := range distinct(rows, func(row *shownRow) [2]string {
		return [2]string{row.runs[0].Model, row.runs[0].GPU}
	}) {
		v.panels = append(v.panels, panel{p[0], p[1], where(rows, func(row *shownRow) bool {
			return row.runs[0].Model == p[0] && row.runs[0].GPU == p[1]
		})})
	}
	return v
}

const replicasKey = "replicas"

// abscissa chooses the x quantity and sets the x of all rows: the load or, if that does not vary,
// the number that axes or fleets set to the most values.
func (r *Runs) abscissa(rows []shownRow, axes []string) abscissa {
	x, most := abscissa{label: "Rate (" + Short(r.Unit) + ")"}, 1
	closed := slices.ContainsFunc(rows, func(row shownRow) bool { return row.load.clients > 0 })
	if closed {
		x.label = "Concurrency (clients)"
	}
	try := func(key, label string, of func(*shownRow) (float64, error)) {
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
	try("", x.label, func(row *shownRow) (float64, error) {
		return max(float64(row.load.clients), row.load.rate), nil
	})
	if x.varies {
		return x
	}
	try(replicasKey, "Replicas", func(row *shownRow) (float64, error) {
		return float64(max(1, row.runs[0].Replicas)), nil
	})
	for i, key := range axes {
		try(key, config.KeyName(key), func(row *shownRow) (float64, error) {
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
