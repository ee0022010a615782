package answers

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

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
	set    map[string]any // what the axes of a sweep set
	folder string         // with its requests.csv; "" where there is none
	series string
	load   string // in words
}

// abscissa is the x quantity of pictures.
type abscissa struct {
	key    string // of the setting; "" for the load
	label  string // with its unit
	name   string // of the only load, where nothing varies
	of     func(*shown) float64
	doubly bool // in powers of two
	varies bool
}

// fleetKey is the setting for the number of replicas.
const fleetKey = "fleet.replicas"

func (r *Runs) view() *view {
	v := &view{all: make([]shown, len(r.Sums))}
	for i := range r.Sums {
		s := &v.all[i]
		s.Summary, s.load = &r.Sums[i], r.loadName(&r.Sums[i])
		if s.set = map[string]any{}; i < len(r.Settings) {
			maps.Copy(s.set, r.Settings[i])
		}
		if i < len(r.Folders) {
			s.folder = r.Folders[i]
		}
	}
	served := slices.DeleteFunc(slices.Clone(v.all), func(s shown) bool { return s.Completed == 0 })
	fleets := len(values(served, loadOfShown)) == 1 && len(values(served, replicas)) > 1
	for i := range v.all {
		if s := &v.all[i]; fleets && s.set[fleetKey] == nil {
			s.set[fleetKey] = replicas(s)
		}
	}
	v.x = r.abscissa(v.all)
	v.name(fleets)
	for _, s := range v.all {
		if s.Completed == 0 {
			continue
		}
		i := slices.IndexFunc(v.panels, func(p panel) bool {
			return p.model == s.Model && p.gpu == s.GPU
		})
		if i < 0 {
			i = len(v.panels)
			v.panels = append(v.panels, panel{model: s.Model, gpu: s.GPU})
		}
		v.panels[i].runs = append(v.panels[i].runs, s)
	}
	return v
}

func replicas(s *shown) float64 { return float64(max(1, s.Replicas)) }

// loadOfShown returns the rate, or the number of clients of a closed loop.
func loadOfShown(s *shown) float64 { return cmp.Or(float64(s.Concurrency), s.Rate) }

// loadName returns the load of a run in words.
func (r *Runs) loadName(s *sim.Summary) string {
	switch {
	case s.Concurrency > 0:
		return Count(s.Concurrency, "client")
	case s.Rate > 0:
		return stats.Tick(s.Rate) + " " + Short(r.Unit)
	}
	return "arrivals as recorded"
}

// abscissa returns the load as x quantity or, if the load does not vary, the number that axes set
// to the most values.
func (r *Runs) abscissa(all []shown) abscissa {
	x := abscissa{label: "Rate (" + Short(r.Unit) + ")", of: loadOfShown}
	closed := slices.ContainsFunc(all, func(s shown) bool { return s.Concurrency > 0 })
	if closed {
		x.label = "Concurrency (clients)"
	}
	loads := values(all, loadOfShown)
	if x.varies = len(loads) > 1; x.varies {
		x.doubly = closed && wide(loads)
		return x
	}
	most := 1
	for _, key := range settings(all) {
		of := func(s *shown) float64 { v, _ := s.set[key].(float64); return v }
		if slices.ContainsFunc(all, func(s shown) bool { _, ok := s.set[key].(float64); return !ok }) {
			continue
		}
		if v := values(all, of); len(v) > most {
			most = len(v)
			x = abscissa{key: key, label: settingLabel(key), of: of, varies: true,
				doubly: wide(v)}
		}
	}
	if !x.varies {
		x.name = all[0].load
	}
	return x
}

// wide reports whether the span of ascending values is best shown in powers of two.
func wide(v []float64) bool { return v[0] > 0 && v[len(v)-1] >= 8*v[0] }

// at returns the x of a run in words.
func (x *abscissa) at(s *shown) string {
	if x.key == "" {
		return s.load
	}
	return setting(x.key, x.of(s))
}

// name sets the name of each run's series: its system, and the axis settings that differ between
// runs.
func (v *view) name(fleets bool) {
	systems := map[string]bool{}
	for i := range v.all {
		systems[v.all[i].System] = true
	}
	keys := slices.DeleteFunc(settings(v.all), func(key string) bool {
		return key == v.x.key || !slices.ContainsFunc(v.all, func(s shown) bool {
			return !reflect.DeepEqual(s.set[key], v.all[0].set[key])
		})
	})
	for i := range v.all {
		s := &v.all[i]
		var words []string
		for _, key := range keys {
			if value, ok := s.set[key]; ok {
				words = append(words, setting(key, value))
			}
		}
		system := papers.SystemName(s.System)
		if _, axis := s.set[fleetKey]; s.Replicas > 1 && !fleets && !axis {
			system += fmt.Sprint(" x", s.Replicas)
		} else if len(systems) == 1 && len(words) > 0 {
			system = ""
		}
		s.series = strings.TrimPrefix(strings.Join(append([]string{system}, words...), ", "), ", ")
	}
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
func (p *panel) series() (names []string) {
	for i := range p.runs {
		if s := p.runs[i].series; !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return names
}

// values returns the panel's x values, ascending.
func (p *panel) values(x *abscissa) []float64 { return values(p.runs, x.of) }

func values(all []shown, of func(*shown) float64) (v []float64) {
	for i := range all {
		v = append(v, of(&all[i]))
	}
	slices.Sort(v)
	return slices.Compact(v)
}

// settings lists the keys that axes set, except keys that panels, loads and systems show.
func settings(all []shown) []string {
	keys := map[string]bool{}
	for i := range all {
		for key := range all[i].set {
			keys[key] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), isNamed)
}

// isNamed reports whether panels, series, loads or seeds show a key anyway.
func isNamed(key string) bool {
	return slices.Contains([]string{"system.preset", "workload.rate", "workload.concurrency", "seed",
		"model", "gpu"}, key)
}

// setting returns a key with its value in words: "budget 512 tokens", "no batch control".
func setting(key string, value any) string {
	words, unit := inWords(key)
	switch v := value.(type) {
	case bool:
		if v {
			return words
		}
		return "no " + words
	case float64:
		return strings.TrimSpace(words + " " + stats.Tick(v) + " " + unit)
	case string:
		return words + " " + path.Base(v)
	}
	return words + " " + fmt.Sprint(value)
}

// settingLabel returns the axis label of a key: "Budget (tokens)".
func settingLabel(key string) string {
	words, unit := inWords(key)
	if unit != "" {
		words += " (" + unit + ")"
	}
	return capital(words)
}

// inWords separates the words of a key from its unit.
func inWords(key string) (words, unit string) {
	words = strings.ReplaceAll(config.KeyName(key), ".", "_")
	for _, u := range []struct{ suffix, unit string }{
		{"_tokens", "tokens"}, {"_blocks", "blocks"}, {"_gib", "GiB"}, {"_mib", "MiB"}, {"_ms", "ms"},
		{"_s", "s"},
	} {
		if w, ok := strings.CutSuffix(words, u.suffix); ok {
			words, unit = w, u.unit
			break
		}
	}
	all := strings.Split(words, "_")
	for i, w := range all {
		switch w {
		case "kv", "dram", "hbm", "ttft", "tbt":
			all[i] = strings.ToUpper(w)
		}
	}
	return strings.Join(all, " "), unit
}
