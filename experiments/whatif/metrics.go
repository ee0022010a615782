package whatif

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/sim"
)

// Metric is what a what-if is about.
type Metric struct {
	Name   string
	Label  string // with the unit
	Higher bool   // is better

	of func(*sim.Summary) float64 // nil of goodput, which a search finds
}

// GoodputMetric is the name of the metric that a search finds.
const GoodputMetric = "goodput"

const prefixHits = "prefix_hits"

// Metrics lists what a what-if may be about.
func Metrics() []Metric {
	all := []Metric{{Name: GoodputMetric, Label: "goodput (requests/s)", Higher: true}}
	for _, t := range []struct {
		name, label string
		scale       float64
		of          func(*sim.Summary) sim.Stats
	}{
		{"ttft", "TTFT (s)", 1, func(s *sim.Summary) sim.Stats { return s.TTFT }},
		{"tbt", "TBT (ms)", 1e3, func(s *sim.Summary) sim.Stats { return s.TBT }},
		{"tpot", "TPOT (ms)", 1e3, func(s *sim.Summary) sim.Stats { return s.TPOT }},
		{"e2e", "time end to end (s)", 1, func(s *sim.Summary) sim.Stats { return s.E2E }},
		{"delay", "scheduling delay (s)", 1, func(s *sim.Summary) sim.Stats { return s.QueueDelay }},
	} {
		for _, stat := range sim.StatNames {
			all = append(all, Metric{Name: t.name + "_" + stat, Label: strings.Replace(stat, "p", "P", 1) +
				" " + t.label,
				of: func(s *sim.Summary) float64 { return t.scale * t.of(s).Of(stat) }})
		}
	}
	return append(all,
		Metric{"throughput", "output (tokens/s)", true, func(s *sim.Summary) float64 {
			return s.ThroughputTokS
		}},
		Metric{"requests", "served (requests/s)", true, func(s *sim.Summary) float64 {
			return s.RequestThroughput
		}},
		Metric{"hits", "hits in HBM (%)", true, func(s *sim.Summary) float64 { return 100 * s.HitRatio }},
		Metric{prefixHits, "tokens of prompts in the prefix cache (%)", true,
			func(s *sim.Summary) float64 {
				if s.PrefixCache == nil {
					return 0
				}
				return 100 * s.PrefixCache.HitShare
			}},
		Metric{"loads", "blocks loaded a step", false, func(s *sim.Summary) float64 {
			return s.BlocksLoadedPerStep
		}},
		Metric{"batch", "requests a step", true, func(s *sim.Summary) float64 { return s.BatchMean }},
	)
}

// MetricNamed returns a metric.
func MetricNamed(name string) (Metric, error) {
	var names []string
	for _, m := range Metrics() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	if near := config.DidYouMean(name, names); near != "" {
		return Metric{}, fmt.Errorf("--metric %s: no such metric%s", name, near)
	}
	return Metric{}, fmt.Errorf("--metric %s: no such metric; want one of %s", name,
		strings.Join(names, ", "))
}

// checkMetric refuses hits in a prefix cache where neither the configuration nor a variant has one:
// 0 would read as a cache that finds nothing.
func (s *Study) checkMetric(variants []variant) error {
	caches := func(one subject) bool { return one.point().System.CachesPrefixes() }
	if s.Metric.Name != prefixHits || slices.ContainsFunc(s.cases, caches) ||
		slices.ContainsFunc(variants, func(v variant) bool {
			return slices.ContainsFunc(v.subjects, caches)
		}) {
		return nil
	}
	return fmt.Errorf("--metric %s: system.prefix_cache = %q, so no prompt hits; set it to \"vllm\" "+
		"or \"radix\", or vary it, as in --vary system.prefix_cache=off,vllm", prefixHits, sim.PrefixOff)
}

// Search says whether a search finds the metric.
func (m *Metric) Search() bool { return m.of == nil }
