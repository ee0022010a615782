package diff

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim"
)

// confidence is that of every interval.
const confidence = 0.95

// Metric is a figure of a run that is compared.
type Metric struct {
	Name string
	of   func(*sim.Summary) float64
	has  func(*sim.Summary) bool // a run that it is of; nil: every one
}

// ServedShare is the metric that says of how many requests all others are.
const ServedShare = "served_share"

// Metrics lists what is compared. Times are in seconds.
func Metrics() []Metric {
	return []Metric{
		{Name: ServedShare, of: func(s *sim.Summary) float64 { return s.ServedShare }},
		{Name: "good_share", of: func(s *sim.Summary) float64 { return known(s.GoodShare) }},
		{Name: "request_goodput", of: func(s *sim.Summary) float64 { return known(s.RequestGoodput) }},
		{Name: "ttft_mean_s", of: func(s *sim.Summary) float64 { return s.TTFT.Mean }},
		{Name: "ttft_p99_s", of: func(s *sim.Summary) float64 { return s.TTFT.P99 }},
		{Name: "tbt_mean_s", of: func(s *sim.Summary) float64 { return s.TBT.Mean }},
		{Name: "tbt_p99_s", of: func(s *sim.Summary) float64 { return s.TBT.P99 }},
		{Name: "e2e_mean_s", of: func(s *sim.Summary) float64 { return s.E2E.Mean }},
		{Name: "e2e_p99_s", of: func(s *sim.Summary) float64 { return s.E2E.P99 }},
		{Name: "throughput_tok_s", of: func(s *sim.Summary) float64 { return s.ThroughputTokS }},
		{Name: "hit_ratio", of: func(s *sim.Summary) float64 { return s.HitRatio }},
		{Name: "prefix_hit_share", of: prefixHitShare,
			has: func(s *sim.Summary) bool { return s.PrefixCache != nil }},
	}
}

// prefixHitShare is the share of prompts' tokens in the prefix cache: 0 without a cache, so that
// one is compared with none.
func prefixHitShare(s *sim.Summary) float64 {
	if s.PrefixCache == nil {
		return 0
	}
	return s.PrefixCache.HitShare
}

// known is NaN for a run whose requests were not judged one by one.
func known(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
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

// Differs says whether the metric differs; of several seeds, by more than chance explains.
func (r *Row) Differs() bool {
	if r.Low == nil {
		return r.A != r.B
	}
	return *r.Low > 0 || *r.High < 0
}

// Change is B/A - 1, NaN where A is 0.
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
	// Programs that made A and B, where they differ.
	ProgramA string `json:"program_a,omitempty"`
	ProgramB string `json:"program_b,omitempty"`
}

// Compare compares the runs of two folders. Points are matched by system, model, card, rate and
// what the axes of a sweep set; a dimension that has one value in A and another one in B is not
// looked at, so that two cards can be compared. Folders without a point in common are an error.
func Compare(a, b *Folder) (*Report, error) {
	report := &Report{Settings: settings(a, b), Rows: []Row{}, OnlyA: []string{}, OnlyB: []string{}}
	if a.program != "" && b.program != "" && a.program != b.program {
		report.ProgramA, report.ProgramB = a.program, b.program
	}
	constant := constants(a, b)
	inA, inB := a.points(constant), b.points(constant)
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
	var a, b []*sim.Summary
	for _, s := range p.runs {
		if i := slices.IndexFunc(q.runs, func(o *sim.Summary) bool { return o.Seed == s.Seed }); i >= 0 {
			a, b = append(a, s), append(b, q.runs[i])
		}
	}
	if len(a) == 0 {
		return nil
	}
	for _, m := range Metrics() {
		if m.has != nil && !slices.ContainsFunc(slices.Concat(a, b), m.has) {
			continue
		}
		row := Row{Point: p.name, Metric: m.Name, Seeds: len(a)}
		var differences []float64
		for i := range a {
			x, y := m.of(a[i]), m.of(b[i])
			row.A, row.B = row.A+x/float64(len(a)), row.B+y/float64(len(a))
			differences = append(differences, y-x)
		}
		if math.IsNaN(row.A + row.B) {
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
