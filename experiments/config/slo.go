package config

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// SLO is the service level of a run. Without any bound the configuration has two, from SparseServe
// §4.2 after Sarathi-Serve: P99 TBT within 25 decode iterations and a mean scheduling delay within
// 2 s. A configuration that sets a bound has only the bounds that it sets.
type SLO struct {
	// statistics: each bound holds for a statistic of the run. requests: each request must meet all
	// bounds (TBT: its longest), and the _stat keys have no effect
	Rule string `toml:"rule" values:"statistics requests"`
	// fraction of requests that may be rejected or, with rule = "requests", miss a bound
	MissShare float64 `toml:"miss_share" unit:"share" range:">= 0, < 1"`

	// bound on time to first token; 0: none
	TTFTS float64 `toml:"ttft_s" unit:"s" range:">= 0, <= 1e9"`
	// statistic of TTFT to bound
	TTFTStat string `toml:"ttft_stat" used:"statistics,ttft"`
	// bound on TBT as a multiple of an unloaded decode step of the model; if cards, engines or GPU
	// counts differ, all systems share the strictest; 0: none
	TBTFactor float64 `toml:"tbt_factor" used:"no_tbt" unit:"iterations" range:">= 0, <= 1e9"`
	// bound on TBT; 0: tbt_factor holds
	TBTS float64 `toml:"tbt_s" unit:"s" range:">= 0, <= 1e9"`
	// statistic of TBT to bound
	TBTStat string `toml:"tbt_stat" used:"statistics,tbt"`
	// bound on a request's mean TBT (TPOT); 0: none
	TPOTS float64 `toml:"tpot_s" unit:"s" range:">= 0, <= 1e9"`
	// statistic of TPOT to bound
	TPOTStat string `toml:"tpot_stat" used:"statistics,tpot"`
	// bound on the time from arrival to last token; 0: none
	E2ES float64 `toml:"e2e_s" unit:"s" range:">= 0, <= 1e9"`
	// statistic of end-to-end time to bound
	E2EStat string `toml:"e2e_stat" used:"statistics,e2e"`
	// bound on the scheduling delay; 0: none
	DelayS float64 `toml:"delay_s" unit:"s" range:">= 0, <= 1e9"`
	// statistic of the scheduling delay to bound
	DelayStat string `toml:"delay_stat" used:"statistics,delay"`
}

// SLORequests is the value of slo.rule that applies the bounds to every request.
const SLORequests = "requests"

// bounded are the metrics that a service level may bound, by the names of its keys.
var bounded = []struct {
	name, long string
	of         func(*metrics.Summary) metrics.Stats
	ofOne      func(*metrics.Request) des.Time
}{
	{"ttft", "TTFT", func(s *metrics.Summary) metrics.Stats { return s.TTFT },
		func(r *metrics.Request) des.Time { return r.FirstToken - r.Arrival }},
	{"tbt", "TBT", func(s *metrics.Summary) metrics.Stats { return s.TBT },
		func(r *metrics.Request) des.Time { return r.LongestTBT }},
	{"tpot", "TPOT", func(s *metrics.Summary) metrics.Stats { return s.TPOT },
		func(r *metrics.Request) des.Time { return r.TPOT() }},
	{"e2e", "time end to end", func(s *metrics.Summary) metrics.Stats { return s.E2E },
		func(r *metrics.Request) des.Time { return r.LastToken - r.Arrival }},
	{"delay", "scheduling delay", func(s *metrics.Summary) metrics.Stats { return s.QueueDelay },
		func(r *metrics.Request) des.Time { return r.Scheduled - r.Arrival }},
}

// bound returns the limit and the statistic of a bounded metric.
func (s *SLO) bound(name string) (limit *float64, stat string) {
	v, _, _ := fieldNamed(s, name+"_s")
	of, _, _ := fieldNamed(s, name+"_stat")
	return v.Addr().Interface().(*float64), of.String()
}

// Bound is one bound of a service level.
type Bound struct {
	Name  string  `json:"name"`    // ttft, tbt, tpot, e2e, delay
	Stat  string  `json:"stat"`    // mean, p50 ... p99; "each" with rule = "requests"
	Limit float64 `json:"limit_s"` // seconds

	index int // of bounded
}

// Bounds lists the bounds, given the time of one decode iteration of the model on the card in
// seconds.
func (s *SLO) Bounds(decodeIterationS float64) []Bound {
	var all []Bound
	for i, of := range bounded {
		limit, stat := s.bound(of.name)
		b := Bound{of.name, stat, *limit, i}
		if b.Name == "tbt" && b.Limit == 0 {
			b.Limit = s.TBTFactor * decodeIterationS
		}
		if s.Rule == SLORequests {
			b.Stat = "each"
		}
		if b.Limit > 0 {
			all = append(all, b)
		}
	}
	return all
}

// Hold replaces limits of the service level by the limits of bounds.
func (s *SLO) Hold(bounds []Bound) {
	for _, b := range bounds {
		limit, _ := s.bound(b.Name)
		*limit = b.Limit
	}
}

// Value returns the bounded statistic of a run, in seconds; the P99 over requests if each request
// has to meet the bound.
func (b *Bound) Value(sum *metrics.Summary) float64 {
	stats := bounded[b.index].of(sum)
	if b.Stat == "each" {
		return stats.P99
	}
	return stats.Of(b.Stat)
}

// Of returns the bounded value of one served request, in seconds: for TBT its longest TBT.
func (b *Bound) Of(r *metrics.Request) float64 { return bounded[b.index].ofOne(r).Seconds() }

// String returns the bound in words, such as "P99 TBT <= 0.5 s".
func (b *Bound) String() string {
	stat := strings.Replace(b.Stat, "p", "P", 1)
	return fmt.Sprintf("%s %s <= %.4g s", stat, bounded[b.index].long, b.Limit)
}

// Good reports whether a served request meets the bounds.
func Good(bounds []Bound, r *metrics.Request) bool {
	for i := range bounds {
		if bounds[i].Of(r) > bounds[i].Limit {
			return false
		}
	}
	return true
}

// String returns the service level with the given bounds in words.
func (s *SLO) String(bounds []Bound) string {
	words := make([]string, len(bounds))
	for i := range bounds {
		words[i] = bounds[i].String()
	}
	share := fmt.Sprintf("at most %.4g %% ", 100*s.MissShare)
	if s.Rule == SLORequests {
		return share + "of the requests rejected or without " + strings.Join(words, ", ")
	}
	return strings.Join(append(words, share+"of the requests rejected"), ", ")
}

// Missed names the parts of the service level that a run misses: bounds by their names, "rejected"
// or "requests" if more than the permitted share was rejected or missed a bound, and "nothing
// completed". It is empty if the run keeps the level.
func (s *SLO) Missed(sum *metrics.Summary, bounds []Bound) []string {
	if sum.Completed == 0 {
		return []string{"nothing completed"}
	}
	bad, values := 0.0, make([]float64, len(bounds))
	if sum.GoodShare != nil {
		bad = 1 - *sum.GoodShare
	}
	for i := range bounds {
		values[i] = bounds[i].Value(sum)
	}
	return s.Exceeded(sum.RejectedShare(), bad, values, bounds)
}

// Exceeded is Missed of the shares of requests that were rejected, and rejected or without a bound,
// and of the values of the bounds.
func (s *SLO) Exceeded(rejected, bad float64, values []float64, bounds []Bound) (missed []string) {
	if rejected > s.MissShare {
		missed = append(missed, "rejected")
	}
	if s.Rule == SLORequests { // a rejected request counts in both shares
		if bad > s.MissShare && len(missed) == 0 {
			missed = append(missed, "requests")
		}
		return missed
	}
	for i := range bounds {
		if values[i] > bounds[i].Limit {
			missed = append(missed, bounds[i].Name)
		}
	}
	return missed
}
