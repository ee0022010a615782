package metrics

import "strings"

// Metric describes a figure of a run for all tables, charts, options and files.
type Metric struct {
	Key  string // name in options, such as ttft_mean
	File string // name in files, in seconds, tokens and shares: ttft_mean_s
	Name string // display name without the statistic: TTFT
	Stat string // mean, p50, p90, p95 or p99; empty for a figure of the whole run
	Unit string // display unit; empty for a plain number
	// Scale converts the value of Of to Unit, such as seconds to ms.
	Scale  float64
	Higher bool // higher values are better
	// Of reads the value from a summary. known is false if the run does not have it.
	Of func(*Summary) (value float64, known bool)
}

// Shown returns the value in Unit.
func (m *Metric) Shown(s *Summary) (value float64, known bool) {
	value, known = m.Of(s)
	return m.Scale * value, known
}

// Title returns the name with its statistic, such as "P99 TTFT".
func (m *Metric) Title() string {
	if m.Stat == "" {
		return m.Name
	}
	return strings.Replace(m.Stat, "p", "P", 1) + " " + m.Name
}

// Label returns the title with the unit, such as "P99 TTFT (s)".
func (m *Metric) Label() string {
	if m.Unit == "" {
		return m.Title()
	}
	return m.Title() + " (" + m.Unit + ")"
}

// latencies lists the latency distributions of a run.
var latencies = []struct {
	key, name, unit string
	scale           float64
	of              func(*Summary) *Stats
}{
	{"ttft", "TTFT", "s", 1, func(s *Summary) *Stats { return &s.TTFT }},
	{"tbt", "TBT", "ms", 1e3, func(s *Summary) *Stats { return &s.TBT }},
	{"tpot", "TPOT", "ms", 1e3, func(s *Summary) *Stats { return &s.TPOT }},
	{"e2e", "time end to end", "s", 1, func(s *Summary) *Stats { return &s.E2E }},
	{"delay", "scheduling delay", "s", 1, func(s *Summary) *Stats { return &s.QueueDelay }},
}

// All lists all figures of a run: the latencies first, each with its mean and percentiles.
func All() []Metric {
	var all []Metric
	for _, l := range latencies {
		for _, stat := range StatNames {
			all = append(all, Metric{Key: l.key + "_" + stat, File: l.key + "_" + stat + "_s", Name: l.name,
				Stat: stat, Unit: l.unit, Scale: l.scale, Of: func(s *Summary) (float64, bool) {
					return l.of(s).Of(stat), s.Completed > 0
				}})
		}
	}
	always := func(of func(*Summary) float64) func(*Summary) (float64, bool) {
		return func(s *Summary) (float64, bool) { return of(s), true }
	}
	prefixes := func(s *Summary) *PrefixStats { return s.PrefixCache }
	self := func(v *float64) float64 { return *v }
	mean := func(u *Use) float64 { return u.Mean }
	return append(all,
		Metric{"throughput", "throughput_tok_s", "output", "", "tokens/s", 1, true,
			always(func(s *Summary) float64 { return s.ThroughputTokS })},
		Metric{"input", "prompt_tok_s", "input", "", "tokens/s", 1, true,
			always(func(s *Summary) float64 { return s.PromptTokS })},
		Metric{"total", "total_tok_s", "input and output", "", "tokens/s", 1, true,
			always(func(s *Summary) float64 { return s.TotalTokS })},
		Metric{"requests", "request_throughput", "served", "", "requests/s", 1, true,
			always(func(s *Summary) float64 { return s.RequestThroughput })},
		Metric{"good", "request_goodput", "served within SLO", "", "requests/s", 1, true,
			known(func(s *Summary) *float64 { return s.RequestGoodput }, self)},
		Metric{"good_share", "good_share", "within SLO", "", "%", 100, true,
			known(func(s *Summary) *float64 { return s.GoodShare }, self)},
		Metric{"served", "served_share", "served", "", "%", 100, true,
			always(func(s *Summary) float64 { return s.ServedShare })},
		Metric{"hits", "hit_ratio", "hits in HBM", "", "%", 100, true, func(s *Summary) (float64, bool) {
			return s.HitRatio, s.HitRatio > 0 || s.BlocksLoadedPerStep > 0
		}},
		Metric{"prefix_hits", "prefix_hit_share", "tokens of prompts in the prefix cache", "", "%", 100,
			true, known(prefixes, func(p *PrefixStats) float64 { return p.HitShare })},
		Metric{"prefix_dram", "prefix_dram_share", "prompts in its DRAM", "", "%", 100, true,
			known(prefixes, func(p *PrefixStats) float64 { return p.share(&p.DRAM) })},
		Metric{"prefix_ssd", "prefix_ssd_share", "prompts on its SSD", "", "%", 100, true,
			known(prefixes, func(p *PrefixStats) float64 { return p.share(&p.SSD) })},
		Metric{"loads", "blocks_loaded_per_step", "blocks loaded a step", "", "", 1, false,
			func(s *Summary) (float64, bool) {
				return s.BlocksLoadedPerStep, s.HitRatio > 0 || s.BlocksLoadedPerStep > 0
			}},
		Metric{"batch", "batch_mean", "requests a step", "", "", 1, true,
			always(func(s *Summary) float64 { return s.BatchMean })},
		Metric{"preempted", "preempted", "preempted", "", "times", 1, false,
			always(func(s *Summary) float64 { return float64(s.Preempted) })},
		Metric{"recomputed", "recomputed_share", "recomputed", "", "% of time", 100, false,
			always(func(s *Summary) float64 { return s.RecomputedShare })},
		use("hbm", "HBM", func(s *Summary) *Use { return s.HBMUse }, mean),
		use("hbm_peak", "HBM peak", func(s *Summary) *Use { return s.HBMUse },
			func(u *Use) float64 { return u.Peak }),
		use("dram", "DRAM", func(s *Summary) *Use { return s.DRAMUse }, mean),
		use("gpu", "GPU busy", func(s *Summary) *Use { return s.GPUUse }, mean),
		use("h2d", "H2D busy", func(s *Summary) *Use { return s.H2DUse }, mean),
		use("d2h", "D2H busy", func(s *Summary) *Use { return s.D2HUse }, mean),
		Metric{"recall", "recall_proxy", "recall proxy", "", "%", 100, true,
			known(func(s *Summary) *RecallProxy { return s.RecallProxy },
				func(p *RecallProxy) float64 { return p.Mean })},
	)
}

// Of returns the metric with the key. It panics if All does not contain it.
func Of(key string) Metric {
	for _, m := range All() {
		if m.Key == key {
			return m
		}
	}
	panic("metrics: no metric " + key)
}

// AllOf returns the metrics with the keys, in order.
func AllOf(keys ...string) []Metric {
	all := make([]Metric, len(keys))
	for i, key := range keys {
		all[i] = Of(key)
	}
	return all
}

// known returns a function for a value of a part of the summary that a run may not have.
func known[T any](of func(*Summary) *T, value func(*T) float64) func(*Summary) (float64, bool) {
	return func(s *Summary) (float64, bool) {
		if part := of(s); part != nil {
			return value(part), true
		}
		return 0, false
	}
}

// share returns the share of prompt tokens that hit a tier of the prefix cache.
func (p *PrefixStats) share(t *PrefixTier) float64 {
	return float64(t.HitTokens) / float64(max(1, p.PromptTokens))
}

func use(key, name string, of func(*Summary) *Use, value func(*Use) float64) Metric {
	return Metric{key, key + "_use", name, "", "%", 100, true, known(of, value)}
}
