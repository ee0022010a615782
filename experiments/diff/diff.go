package diff

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// confidence is the confidence level of every interval.
const confidence = 0.95

// ServedShare is the name, in files, of the metric for the share of requests that a run served.
const ServedShare = "served_share"

// compared are the metrics of a comparison.
func compared() []metrics.Metric {
	return metrics.AllOf("served", "good_share", "good", "ttft_mean", "ttft_p99", "tbt_mean",
		"tbt_p99", "e2e_mean", "e2e_p99", "throughput", "hits", "prefix_hits")
}

// judged reports whether both runs have a metric. A run without a cache hits nothing, so it is
// compared with one that has a cache; runs whose requests were not judged one by one are not.
func judged(m *metrics.Metric, a, b *metrics.Summary) bool {
	_, inA := m.Of(a)
	_, inB := m.Of(b)
	switch m.Key {
	case "good_share", "good":
		return inA && inB
	case "prefix_hits":
		return inA || inB
	}
	return true
}

// Row compares one metric at one point, over the seeds that both folders have.
type Row struct {
	Point  string  `json:"point"`
	Metric string  `json:"metric"`
	A      float64 `json:"a"` // mean over seeds
	B      float64 `json:"b"`
	Seeds  int     `json:"seeds"`
	// Low and High bound B - A with 95 % confidence: Student's t of the differences seed by seed,
	// mean ± t sd/√n. Nil with less than two seeds.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// Differs reports whether the metric differs; over several seeds, by more than chance explains.
func (r *Row) Differs() bool {
	if r.Low == nil {
		return r.A != r.B
	}
	return *r.Low > 0 || *r.High < 0
}

// Change returns B/A - 1; NaN if A is 0.
func (r *Row) Change() float64 {
	if r.A == 0 {
		return math.NaN()
	}
	return r.B/r.A - 1
}

// Setting is a key of the configuration with different values; empty where a folder lacks it.
type Setting struct {
	Key string `json:"key"`
	A   string `json:"a"`
	B   string `json:"b"`
}

// Report is the comparison of two folders.
type Report struct {
	Settings []Setting `json:"settings"`
	Rows     []Row     `json:"rows"`
	OnlyA    []string  `json:"only_a"` // points
	OnlyB    []string  `json:"only_b"`
	// VersionA and VersionB are the model versions behind A and B, if they differ.
	VersionA string `json:"version_a,omitempty"`
	VersionB string `json:"version_b,omitempty"`
}

// Compare compares the runs of two folders. It matches points by system, model, card, rate and axis
// settings. It ignores a dimension that has one value in A and another in B, so two cards can be
// compared. It is an error if the folders have no point in common.
func Compare(a, b *Folder) (*Report, error) {
	report := &Report{Settings: settings(a, b), Rows: []Row{}, OnlyA: []string{}, OnlyB: []string{}}
	if a.version != "" && b.version != "" && a.version != b.version {
		report.VersionA, report.VersionB = a.version, b.version
	}
	varies := varying(a, b)
	inA, inB := a.points(varies), b.points(varies)
	for i := range inA {
		j := slices.IndexFunc(inB, func(p point) bool { return p.name == inA[i].name })
		if j < 0 {
			report.OnlyA = append(report.OnlyA, inA[i].name)
			continue
		}
		report.Rows = append(report.Rows, inA[i].compare(&inB[j])...)
	}
	for i := range inB {
		if !slices.ContainsFunc(inA, func(p point) bool { return p.name == inB[i].name }) {
			report.OnlyB = append(report.OnlyB, inB[i].name)
		}
	}
	if len(report.Rows) == 0 {
		return nil, fmt.Errorf("%s and %s have no point and seed in common: %s; %s", a.Dir, b.Dir,
			inA[0].name, inB[0].name)
	}
	return report, nil
}

// compare compares the seeds that both points have.
func (p *point) compare(q *point) (rows []Row) {
	var a, b []*metrics.Summary
	for _, s := range p.runs {
		if i := slices.IndexFunc(q.runs, func(o *metrics.Summary) bool {
			return o.Seed == s.Seed
		}); i >= 0 {
			a, b = append(a, s), append(b, q.runs[i])
		}
	}
	if len(a) == 0 {
		return nil
	}
	for _, m := range compared() {
		row := Row{Point: p.name, Metric: m.File, Seeds: len(a)}
		var differences []float64
		for i := range a {
			if !judged(&m, a[i], b[i]) {
				continue
			}
			x, _ := m.Of(a[i])
			y, _ := m.Of(b[i])
			row.A, row.B = row.A+x/float64(len(a)), row.B+y/float64(len(a))
			differences = append(differences, y-x)
		}
		if len(differences) < len(a) {
			continue
		}
		if len(a) > 1 {
			mean, half := stats.Mean(differences, confidence)
			low, high := mean-half, mean+half
			row.Low, row.High = &low, &high
		}
		rows = append(rows, row)
	}
	return rows
}
