package papers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// measurement defines how claims.toml derives a number from the results.
type measurement struct {
	source
	Until  []float64 `toml:"until"`  // highest rate of each experiment, requests/s; nil: no limit
	Metric string    `toml:"metric"` // of figures.toml
	Each   []string  `toml:"each"`   // keys by whose values rows are compared apart
	Reduce string    `toml:"reduce"` // of reductions
	Bound  string    `toml:"bound"`  // "", below, above
	Null   *source   `toml:"null"`   // what differs without the paper's mechanism
}

// source selects the rows that a number is measured on. Numbers of a claim may have different
// sources.
type source struct {
	From  []string `toml:"from"` // experiments
	Over  filter   `toml:"over"`
	Under filter   `toml:"under"`
	Times float64  `toml:"times"` // of the means; 0 = 1
}

const (
	below = "below"
	above = "above"
)

// filter matches the rows with its values; a list matches any of its values.
type filter map[string]any

// reductions are the values of reduce: functions over the ratios of all combinations.
var reductions = map[string]func([]float64) float64{
	"":           func(x []float64) float64 { return x[0] },
	"difference": func(x []float64) float64 { return x[0] },
	"lost":       func(x []float64) float64 { return 1 - x[0] },
	"largest":    slices.Max[[]float64],
	"smallest":   slices.Min[[]float64],
	"mean":       mean,
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// with returns m overridden by the keys that o sets.
func (m measurement) with(o *source) *measurement {
	if o.From != nil {
		m.From = o.From
	}
	m.Over, m.Under = m.Over.with(o.Over), m.Under.with(o.Under)
	m.Times = cmp.Or(o.Times, m.Times)
	return &m
}

func (f filter) with(o filter) filter {
	if o == nil {
		return f
	}
	all := filter{}
	maps.Copy(all, f)
	maps.Copy(all, o)
	return all
}

// takes reports whether a row matches the filter.
func (f filter) takes(r *record) bool {
	for key, want := range f {
		permitted, ok := want.([]any)
		if !ok {
			permitted = []any{want}
		}
		if !slices.ContainsFunc(permitted, func(v any) bool { return cellText(v) == r.cells[key] }) {
			return false
		}
	}
	return true
}

// String writes a filter as claims.toml does.
func (f filter) String() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(f)) {
		parts = append(parts, fmt.Sprintf("%s = %v", key, f[key]))
	}
	return strings.Join(parts, ", ")
}

// measure returns the number from the results: over divided by under for each combination, reduced.
// The sides are means of the metric over the rows that match their filters; 1 without a filter.
func (r *results) measure(m *measurement) (float64, error) {
	rows, err := r.rows(m)
	if err != nil {
		return 0, err
	}
	type sides struct{ sum, n [2]float64 } // over, under
	filters, all, by := [2]filter{m.Over, m.Under}, sides{}, map[string]*sides{}
	for _, row := range rows {
		key := row.texts(strings.Join(m.Each, " "))
		for side, f := range filters {
			if f == nil || !f.takes(row) {
				continue
			}
			v, err := r.metric(m.Metric, row)
			if err != nil {
				return 0, fmt.Errorf("%s: %s: %w", m.From, m.Metric, err)
			}
			if by[key] == nil {
				by[key] = &sides{}
			}
			by[key].sum[side] += v
			by[key].n[side]++
			all.n[side]++
		}
	}
	for side, f := range filters {
		if f != nil && all.n[side] == 0 {
			return 0, fmt.Errorf("%s: no row with %v", m.From, f)
		}
	}
	var numbers []float64
	for _, key := range slices.Sorted(maps.Keys(by)) {
		mean, of := [2]float64{1, 1}, by[key]
		for side, f := range filters {
			if f != nil {
				mean[side] = cmp.Or(m.Times, 1) * of.sum[side] / of.n[side]
			}
		}
		switch a, b := mean[0], mean[1]; {
		case m.Under != nil && of.n[1] == 0: // nothing to compare with
		case m.Over != nil && of.n[0] == 0:
			return 0, fmt.Errorf("%s: no row with %v and %s", m.From, m.Over, key)
		case m.Metric == "goodput" && !(a > 0 && b > 0): // no goodput is a multiple of none
		case m.Reduce == "difference":
			numbers = append(numbers, a-b)
		case b == 0:
			return 0, fmt.Errorf("%s: a mean of 0 to divide by", m.From)
		default:
			numbers = append(numbers, a/b)
		}
	}
	if len(numbers) == 0 {
		return 0, fmt.Errorf("%s: no goodput with %v to compare with %v", m.From, m.Over, m.Under)
	}
	return reductions[m.Reduce](numbers), nil
}
