package whatif

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Metric is the metric of a what-if.
type Metric struct {
	Name   string
	Label  string // with the unit
	Higher bool   // is better

	of func(*metrics.Summary) float64 // nil of goodput, which a search finds
}

// GoodputMetric is the name of the metric that needs a search.
const GoodputMetric = "goodput"

const prefixHits = "prefix_hits"

// ofRuns are the metrics of a whole run that a what-if may be about.
var ofRuns = []string{"throughput", "requests", "hits", prefixHits, "loads", "batch"}

// Metrics lists the metrics of a what-if: goodput, and the metrics that every run reports.
func Metrics() []Metric {
	all := []Metric{{Name: GoodputMetric, Label: "goodput (requests/s)", Higher: true}}
	for _, m := range metrics.All() {
		if m.Stat == "" && !slices.Contains(ofRuns, m.Key) {
			continue
		}
		all = append(all, Metric{Name: m.Key, Label: m.Label(), Higher: m.Higher,
			of: func(s *metrics.Summary) float64 { v, _ := m.Shown(s); return v }})
	}
	return all
}

// MetricNamed returns a metric.
func MetricNamed(name string) (Metric, error) {
	return named("metric", name, Metrics(), func(m *Metric) string { return m.Name })
}

// named returns the entry of a list that the value of a flag names.
func named[T any](flag, name string, all []T, nameOf func(*T) string) (one T, err error) {
	var names []string
	for i := range all {
		if names = append(names, nameOf(&all[i])); nameOf(&all[i]) == name {
			return all[i], nil
		}
	}
	return one, fmt.Errorf("--%s %s: no such %[1]s%s; want one of %s", flag, name,
		nearest.Meant(name, names), strings.Join(names, ", "))
}

// checkMetric refuses prefix cache hits as a metric if neither the configuration nor a variant has
// a prefix cache: 0 would look like a cache without hits.
func (s *Study) checkMetric() error {
	caches := func(one subject) bool { return one.Point.System.CachesPrefixes() }
	if s.metric.Name != prefixHits || slices.ContainsFunc(s.cases, caches) ||
		slices.ContainsFunc(s.variants, func(v variant) bool {
			return slices.ContainsFunc(v.subjects, caches)
		}) {
		return nil
	}
	return fmt.Errorf("--metric %s: prefix_cache.mode = %q, so no prompt hits; set it to \"vllm\" "+
		"or \"radix\", or vary it, as in --vary prefix_cache.mode=off,vllm", prefixHits, sim.PrefixOff)
}

// Search reports whether the metric needs a search instead of one run.
func (m *Metric) Search() bool { return m.of == nil }
