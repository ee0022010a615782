package validate

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces/records"
)

// Replayed is one request of a record and of its simulation.
type Replayed struct {
	ID        int // from 1, in order of arrival
	Stage     string
	Measured  records.Request
	Simulated records.Request // the same but for its times
}

// RecordComparison is one figure of a record, measured and simulated, over the requests of one
// stage of its load. Error is relative, simulated over measured minus 1; nil if measured is 0 and
// simulated is not.
//
//	ttft_mean_s, ttft_p50_s, ttft_p90_s, ttft_p99_s   from arrival to first token
//	tpot_mean_s, ...   mean time between the tokens of a request with 2 or more tokens
//	e2e_mean_s, ...    from arrival to last token
//	throughput_tok_s   output tokens over the time from first arrival to last token
//
// Means and percentiles are over requests, one value per request. Percentiles are interpolated
// between the two nearest requests, as benchmark clients do.
type RecordComparison struct {
	Run       string   `json:"run"`
	Stage     string   `json:"stage"`
	Metric    string   `json:"metric"`
	Measured  float64  `json:"measured"`
	Simulated float64  `json:"simulated"`
	Error     *float64 `json:"error"`

	// Requests is the number of values behind the figure.
	Requests int `json:"-"`
}

// FewForP99 is the number of requests below which a P99 is close to the maximum.
const FewForP99 = 100

// Thin reports whether a figure has too few requests to be meaningful: a P99 of fewer than
// FewForP99.
func (c *RecordComparison) Thin() bool {
	return c.Requests < FewForP99 && strings.HasSuffix(c.Metric, "_p99_s")
}

// compareReplayed compares the requests of one stage.
func compareReplayed(run, stage string, all []Replayed) []RecordComparison {
	var out []RecordComparison
	add := func(metric string, requests int, measured, simulated float64) {
		out = append(out, RecordComparison{run, stage, metric, measured, simulated,
			relativeError(measured, simulated), requests})
	}
	for _, m := range []struct {
		name string
		of   func(*records.Request) float64
	}{
		{"ttft", func(s *records.Request) float64 { return s.TTFT }},
		{"tpot", (*records.Request).TPOT},
		{"e2e", func(s *records.Request) float64 { return s.E2E }},
	} {
		var measured, simulated []float64
		for i := range all {
			if v := m.of(&all[i].Simulated); !math.IsNaN(v) {
				measured, simulated = append(measured, m.of(&all[i].Measured)), append(simulated, v)
			}
		}
		n := len(measured)
		if n == 0 {
			continue // every answer is a single token
		}
		slices.Sort(measured)
		slices.Sort(simulated)
		add(m.name+"_mean_s", n, stat.Mean(measured, nil), stat.Mean(simulated, nil))
		for _, p := range []struct {
			name string
			p    float64
		}{{"_p50_s", 50}, {"_p90_s", 90}, {"_p99_s", 99}} {
			add(m.name+p.name, n, stats.Of(measured, p.p), stats.Of(simulated, p.p))
		}
	}
	measured := throughput(all, func(r *Replayed) *records.Request { return &r.Measured })
	add("throughput_tok_s", len(all), measured,
		throughput(all, func(r *Replayed) *records.Request { return &r.Simulated }))
	return out
}

// compareAggregates compares a record without requests: of the simulated figures those that it has,
// and the time between tokens over all tokens (tbt_mean_s, ...).
func compareAggregates(all []RecordComparison, figures map[string]float64,
	simulated *metrics.Summary) (out []RecordComparison) {
	for _, stat := range []string{"mean", "p50", "p90", "p99"} {
		all = append(all, RecordComparison{Run: all[0].Run, Stage: all[0].Stage,
			Metric: "tbt_" + stat + "_s", Simulated: simulated.TBT.Of(stat), Requests: all[0].Requests})
	}
	for _, c := range all {
		if v, ok := figures[c.Metric]; ok {
			c.Measured, c.Error = v, relativeError(v, c.Simulated)
			out = append(out, c)
		}
	}
	return out
}

// throughput returns the output tokens per second of requests in order of arrival, from the first
// arrival to the last token.
func throughput(all []Replayed, side func(*Replayed) *records.Request) float64 {
	tokens, end := 0, 0.0
	for i := range all {
		s := side(&all[i])
		tokens += s.Output
		end = max(end, s.At.Seconds()+s.E2E)
	}
	return float64(tokens) / (end - side(&all[0]).At.Seconds())
}
