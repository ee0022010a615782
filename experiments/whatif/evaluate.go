package whatif

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// subject is a server of a variant of the configuration: under its load, or without a rate where a
// search finds the metric.
type subject struct {
	capacity.Candidate
	hash string // the same for equal configurations
}

// Value is the metric of a subject.
type Value struct {
	Value float64 `json:"value"`
	// in the order of the seeds; empty for a coarse search
	Seeds     []float64      `json:"seed_values"`
	LimitedBy string         `json:"limited_by,omitempty"` // of goodput: what fails above
	Warnings  []warn.Warning `json:"warnings"`

	spans []span // in the order of the seeds
	none  bool   // no request was served, so there is none
}

// evaluator finds metrics of subjects.
type evaluator struct {
	*capacity.Planner
	values map[string]Value             // of goodput, by hash
	sums   map[string][]metrics.Summary // by hash
}

// evaluate finds a metric of subjects. Subjects with equal configurations are evaluated once.
func (e *evaluator) evaluate(ctx context.Context, m *Metric, spec config.GoodputSearch,
	all []subject) ([]Value, error) {
	values := make([]Value, len(all))
	if !m.Search() {
		sums, err := e.runs(ctx, all)
		for i := range sums {
			values[i] = m.measured(sums[i])
		}
		return values, err
	}
	missing := lacking(all, e.values)
	candidates := make([]capacity.Candidate, len(missing))
	for i := range missing {
		candidates[i] = missing[i].Candidate
	}
	found, err := e.Do(ctx, spec, candidates)
	if err != nil {
		return nil, err
	}
	for i := range found {
		g := &found[i]
		v := Value{Value: g.Goodput, Seeds: g.SeedGoodputs, LimitedBy: g.LimitedBy, Warnings: g.Warnings}
		for _, b := range g.SeedBrackets {
			v.spans = append(v.spans, span{b[0], b[1]})
		}
		if spec.Coarse {
			v.Seeds = []float64{} // brackets of seeds are not narrowed
		}
		e.values[missing[i].hash] = v
	}
	for i := range all {
		values[i] = e.values[all[i].hash]
	}
	return values, nil
}

// lacking lists the subjects, each once, that known has not.
func lacking[T any](all []subject, known map[string]T) (missing []subject) {
	for _, s := range all {
		if _, ok := known[s.hash]; !ok &&
			!slices.ContainsFunc(missing, func(o subject) bool { return o.hash == s.hash }) {
			missing = append(missing, s)
		}
	}
	return missing
}

// measured returns the mean of a metric over the runs of the seeds.
func (m *Metric) measured(sums []metrics.Summary) Value {
	v := Value{Warnings: []warn.Warning{}}
	for i := range sums {
		s := &sums[i]
		v.none = v.none || s.Completed == 0
		v.Seeds = append(v.Seeds, m.of(s))
		v.spans = append(v.spans, span{m.of(s), m.of(s)})
		for _, w := range s.Warnings {
			if !slices.Contains(warn.Texts(v.Warnings), w.Text) {
				v.Warnings = append(v.Warnings, w)
			}
		}
	}
	v.Value = stat.Mean(v.Seeds, nil)
	return v
}

// runs makes the runs of subjects and returns their summaries, one per seed.
func (e *evaluator) runs(ctx context.Context, all []subject) ([][]metrics.Summary, error) {
	var points []config.Point
	var of []string // hash of the subject of each point
	for _, s := range lacking(all, e.sums) {
		points = append(points, s.Runs()...)
		of = append(of, slices.Repeat([]string{s.hash}, len(s.Seeds))...)
	}
	results, err := e.Runs(ctx, points)
	if err != nil {
		return nil, err
	}
	for i := range results {
		e.sums[of[i]] = append(e.sums[of[i]], results[i].Summary)
	}
	sums := make([][]metrics.Summary, len(all))
	for i := range all {
		sums[i] = e.sums[all[i].hash]
	}
	return sums, nil
}
