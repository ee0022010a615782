package figures

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// panel is the results of one model on one card.
type panel struct {
	model, gpu string
	runs       []Run
}

// name is a panel's title: its model, and its card where several are drawn.
func (p *panel) name(all []panel) string {
	models, cards := false, false
	for i := range all {
		models = models || all[i].model != p.model
		cards = cards || all[i].gpu != p.gpu
	}
	switch {
	case cards && !models:
		return gpuLabel(p.gpu)
	case cards:
		return modelLabel(p.model) + " on " + gpuLabel(p.gpu)
	}
	return modelLabel(p.model)
}

// panels groups runs by model and card, in the order of the runs. Runs that
// finished nothing have nothing to show.
func panels(runs []Run) []panel {
	var out []panel
	for _, r := range runs {
		if r.Completed == 0 {
			continue
		}
		i := slices.IndexFunc(out, func(p panel) bool { return p.model == r.Model && p.gpu == r.GPU })
		if i < 0 {
			i = len(out)
			out = append(out, panel{model: r.Model, gpu: r.GPU})
		}
		out[i].runs = append(out[i].runs, r)
	}
	return out
}

// curves groups runs by series, in the order of the runs, and averages y over
// those of one x; x ascends.
func curves(runs []Run, series func(*Run) string, x, y func(*Run) float64) []curve {
	type key struct {
		series string
		x      float64
	}
	values, unstable, rejects := map[key][]float64{}, map[key]bool{}, map[key]bool{}
	var out []curve
	for i := range runs {
		r := &runs[i]
		v := y(r)
		if r.Completed == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		k := key{series(r), x(r)}
		c := slices.IndexFunc(out, func(c curve) bool { return c.series == k.series })
		if c < 0 {
			c = len(out)
			out = append(out, curve{series: k.series})
		}
		if len(values[k]) == 0 {
			out[c].points = append(out[c].points, point{x: k.x})
		}
		values[k] = append(values[k], v)
		unstable[k] = unstable[k] || warn.Has(r.Warnings, warn.UnstableQueue, warn.WaitsGrow)
		rejects[k] = rejects[k] || r.Rejected > 0
	}
	for _, c := range out {
		for i := range c.points {
			k := key{c.series, c.points[i].x}
			c.points[i] = summarise(k.x, values[k], unstable[k])
			c.points[i].rejects = rejects[k]
		}
		slices.SortFunc(c.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	}
	return out
}

// fewest is how many runs an interval is drawn of. Fewer are drawn as dots, because an interval of
// two or three runs is wider than what it is about.
const fewest = 5

func summarise(x float64, values []float64, unstable bool) point {
	p := point{x: x, runs: len(values), mean: stat.Mean(values, nil), unstable: unstable}
	p.low, p.high = p.mean, p.mean
	if len(values) > 1 && len(values) < fewest {
		p.values = values
	}
	if len(values) > 1 {
		_, half := stats.Mean(values, 0.95)
		p.low, p.high = p.mean-half, p.mean+half
		if p.mean >= 0 && p.low < 0 { // no quantity here can be negative
			p.low = 0
		}
	}
	return p
}

// stepTime is the mean time of a step in ms, its phases added up in the order of
// their names so that rounding never varies.
func stepTime(r *Run) float64 {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(r.PhaseS)) {
		sum += r.PhaseS[name]
	}
	return 1e3 * sum / r.Steps
}

// Series and abscissae of runs.

func bySystem(r *Run) string {
	if r.series != "" {
		return r.series
	}
	return label(r.System)
}

func rate(r *Run) float64 { return r.Rate }

// load is the rate, or the clients of a closed loop.
func load(r *Run) float64 {
	if r.Concurrency > 0 {
		return float64(r.Concurrency)
	}
	return r.Rate
}

// loadLabel is the label of an axis of loads.
func loadLabel(runs []Run) string {
	if slices.ContainsFunc(runs, func(r Run) bool { return r.Concurrency > 0 }) {
		return "Concurrency (clients)"
	}
	if slices.ContainsFunc(runs, func(r Run) bool { return r.ofSessions() }) {
		return "Session Rate (sessions/s)"
	}
	return "Req Rate (req/s)"
}

// ofSessions says whether a run's rate is of sessions: their first turns arrive.
func (r *Run) ofSessions() bool { return r.trace == "sessions" } // as workload.trace has it

// number returns what an axis of the experiment set, NaN when it set no number.
func (r *Run) number(key string) float64 {
	if v, ok := r.Settings[key].(float64); ok {
		return v
	}
	return math.NaN()
}

// text returns what an axis of the experiment set, "" when it set no text.
func (r *Run) text(key string) string {
	s, _ := r.Settings[key].(string)
	return s
}
