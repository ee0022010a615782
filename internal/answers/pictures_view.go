package answers

import (
	"fmt"
	"path"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim"
)

// view arranges the runs for pictures: one panel per model and card, over the varied quantity.
type view struct {
	all    []shown
	panels []panel
	x      abscissa
}

// panel holds the runs of one model on one card that served requests.
type panel struct {
	model, gpu string
	runs       []shown
}

// shown is a run with the series that it belongs to.
type shown struct {
	*sim.Summary
	folder string // with its requests.csv; "" where there is none
	series string
	load   string // in words
	x      float64
}

// abscissa is the x quantity of pictures: the load, or a key.
type abscissa struct {
	key    string // "" for the load
	label  string // with its unit
	doubly bool   // in powers of two
	varies bool
}

func (r *Runs) view() *view {
	axes := slices.DeleteFunc(r.axes(), func(key string) bool { // panels show these
		return key == "model" || key == "gpu"
	})
	v := &view{all: make([]shown, len(r.Sums))}
	v.x = r.abscissa(v.all, axes)
	axes = slices.DeleteFunc(axes, func(key string) bool { return key == v.x.key })
	for i := range v.all {
		s := &v.all[i]
		s.Summary, s.load = &r.Sums[i], loadOf(&r.Sums[i]).words(r.Unit)
		s.series = papers.SystemName(s.System)
		if s.Replicas > 1 && v.x.key != replicasKey {
			s.series += fmt.Sprint(" x", s.Replicas)
		}
		s.series += r.settings(i, axes)
		if i < len(r.Folders) {
			s.folder = r.Folders[i]
		}
		if s.Completed == 0 {
			continue
		}
		j := slices.IndexFunc(v.panels, func(p panel) bool {
			return p.model == s.Model && p.gpu == s.GPU
		})
		if j < 0 {
			j = len(v.panels)
			v.panels = append(v.panels, panel{model: s.Model, gpu: s.GPU})
		}
		v.panels[j].runs = append(v.panels[j].runs, *s)
	}
	return v
}

const replicasKey = "replicas"

// abscissa chooses the x quantity and sets the x of all runs: the load or, if that does not vary,
// the number that axes or fleets set to the most values.
func (r *Runs) abscissa(all []shown, axes []string) abscissa {
	x := abscissa{label: "Rate (" + Short(r.Unit) + ")"}
	closed := slices.ContainsFunc(r.Sums, func(s sim.Summary) bool { return s.Concurrency > 0 })
	if closed {
		x.label = "Concurrency (clients)"
	}
	most := 1
	try := func(key, label string, of func(run int) (float64, bool)) {
		var set []float64
		for i := range all {
			v, known := of(i)
			if !known {
				return
			}
			set = append(set, v)
		}
		low, high := slices.Min(set), slices.Max(set)
		n := len(distinct(set, func(v *float64) float64 { return *v }))
		if n <= most {
			return
		}
		most = n
		for i := range all {
			all[i].x = set[i]
		}
		x = abscissa{key, label, (key != "" || closed) && low > 0 && high >= 8*low, true}
	}
	try("", x.label, func(run int) (float64, bool) {
		l := loadOf(&r.Sums[run])
		return max(float64(l.clients), l.rate), true
	})
	if x.varies {
		return x
	}
	try(replicasKey, "Replicas", func(run int) (float64, bool) {
		return float64(max(1, r.Sums[run].Replicas)), true
	})
	for _, key := range axes {
		try(key, config.KeyName(key), func(run int) (v float64, number bool) {
			v, number = r.Settings[run][key].(float64)
			return v, number
		})
	}
	return x
}

// at returns the x of a run in words.
func (x *abscissa) at(s *shown) string {
	if x.key == "" {
		return s.load
	}
	return config.KeyName(x.key) + "=" + stats.Tick(s.x)
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

// series lists the panel's series, each once.
func (p *panel) series() []string {
	return distinct(p.runs, func(s *shown) string { return s.series })
}

// values returns the panel's x values, ascending.
func (p *panel) values() []float64 {
	return slices.Sorted(slices.Values(distinct(p.runs, func(s *shown) float64 { return s.x })))
}

// at returns the panel's runs at an x, of one series or, with "", of all.
func (p *panel) at(x float64, series string) []shown {
	return where(p.runs, func(s *shown) bool {
		return s.x == x && (series == "" || s.series == series)
	})
}
