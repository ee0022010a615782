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
func (r *results) measure(m *measurement) (float64, error) {
	rows, err := r.rows(m)
	if err != nil {
		return 0, err
	}
	over, err := r.means(m, m.Over, rows)
	if err != nil {
		return 0, err
	}
	under, err := r.means(m, m.Under, rows)
	if err != nil {
		return 0, err
	}
	keys := under
	if keys == nil {
		keys = over
	}
	var numbers []float64
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		a, ok := over[key]
		b := under[key]
		switch {
		case over != nil && !ok:
			return 0, fmt.Errorf("%s: no row with %v and %s", m.From, m.Over, key)
		case over == nil:
			a = 1
		case under == nil:
			b = 1
		}
		switch {
		case m.Metric == "goodput" && !(a > 0 && b > 0):
			continue // no goodput is a multiple of none
		case m.Reduce == "difference":
			a, b = a-b, 1
		case b == 0:
			return 0, fmt.Errorf("%s: a mean of 0 to divide by", m.From)
		}
		numbers = append(numbers, a/b)
	}
	if len(numbers) == 0 {
		return 0, fmt.Errorf("%s: no goodput with %v to compare with %v", m.From, m.Over, m.Under)
	}
	return reductions[m.Reduce](numbers), nil
}

// means returns the mean of the metric over the rows that match a filter, by their values of Each;
// nil without a filter.
func (r *results) means(m *measurement, f filter, rows []*record) (map[string]float64, error) {
	if f == nil {
		return nil, nil
	}
	sum, n := map[string]float64{}, map[string]float64{}
	for _, row := range rows {
		if !f.takes(row) {
			continue
		}
		v, err := r.metric(m.Metric, row)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", m.From, m.Metric, err)
		}
		var values []string
		for _, key := range m.Each {
			values = append(values, row.cells[key])
		}
		key := strings.Join(values, " ")
		sum[key] += v
		n[key]++
	}
	if len(sum) == 0 {
		return nil, fmt.Errorf("%s: no row with %v", m.From, f)
	}
	for key := range sum {
		sum[key] = cmp.Or(m.Times, 1) * sum[key] / n[key]
	}
	return sum, nil
}
