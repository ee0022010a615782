package validate

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/records"
)

// process makes arrivals: stages of a number of requests at a rate, with the gaps
// that draw makes of a mean.
func process(draw func(mean float64) float64, stages ...[2]float64) []float64 {
	var all []float64
	now := 0.0
	for _, s := range stages {
		for range int(s[0]) {
			all = append(all, now)
			now += draw(1 / s[1])
		}
	}
	return all
}

func poisson(seed uint64) func(float64) float64 {
	r := des.Rand(seed, "test.stages")
	return func(mean float64) float64 { return mean * r.ExpFloat64() }
}

// bursty draws hyperexponential gaps with a squared coefficient of variation of
// 5.5: four of five are short.
func bursty(seed uint64) func(float64) float64 {
	r := des.Rand(seed, "test.bursts")
	return func(mean float64) float64 {
		if r.Float64() < 0.8 {
			return mean * 0.25 * r.ExpFloat64()
		}
		return mean * 4 * r.ExpFloat64()
	}
}

func even(mean float64) float64 { return mean }

func TestLoadStages(t *testing.T) {
	for name, c := range map[string]struct {
		arrivals []float64
		want     []float64 // rates, within 15 %
		ends     []int     // requests, within 25
	}{
		"steady": {process(poisson(1), [2]float64{3000, 5}), []float64{5}, nil},
		"doubled": {process(poisson(2), [2]float64{1500, 5}, [2]float64{3000, 10}),
			[]float64{5, 10}, []int{1500}},
		"three": {
			process(poisson(3), [2]float64{600, 2}, [2]float64{600, 6}, [2]float64{600, 3}),
			[]float64{2, 6, 3}, []int{600, 1200}},
		"even": {process(even, [2]float64{200, 4}, [2]float64{200, 8}), []float64{4, 8},
			[]int{200}},
		"even and steady": {process(even, [2]float64{400, 4}), []float64{4}, nil},
		"bursts":          {process(bursty(1), [2]float64{3000, 5}), []float64{5}, nil},
		"too near": {process(poisson(4), [2]float64{2000, 5}, [2]float64{2000, 5.5}),
			[]float64{5.25}, nil},
		"too few": {process(even, [2]float64{40, 1}, [2]float64{40, 100}), nil, nil},
		"a warm-up": {process(poisson(5), [2]float64{200, 1}, [2]float64{2000, 10}),
			[]float64{1, 10}, []int{200}},
		"all at once":      {make([]float64, 300), []float64{math.Inf(1)}, nil},
		"a single request": {[]float64{3}, nil, nil},
		"two":              {[]float64{0, 1}, []float64{1}, nil},
		"at once, then not": {append(make([]float64, 100), process(even, [2]float64{200, 10})...),
			[]float64{math.Inf(1), 10}, []int{100}},
	} {
		got := loadStages(c.arrivals)
		if n := max(1, len(c.want)); len(got) != n {
			t.Errorf("%s: %d stages %+v, want %d", name, len(got), got, n)
			continue
		}
		for i, want := range c.want {
			if r := got[i].Rate; r != want && math.Abs(r/want-1) > 0.15 {
				t.Errorf("%s: stage %d at %.3g requests/s, want %.3g", name, i, r, want)
			}
		}
		for i, want := range c.ends {
			if off := got[i].end - want; off < -25 || off > 25 {
				t.Errorf("%s: stage %d ends at request %d, want %d", name, i, got[i].end, want)
			}
		}
	}
}

// A client that waits between two stages starts the second one after the pause.
func TestStagesOfAPause(t *testing.T) {
	a := process(poisson(6), [2]float64{600, 5})
	pause := a[len(a)-1] + 5
	for _, at := range process(poisson(7), [2]float64{900, 10}) {
		a = append(a, pause+at)
	}
	if got := loadStages(a); len(got) != 2 || got[0].end != 600 || got[1].From != pause {
		t.Errorf("%+v, want the second stage from %g s", got, pause)
	}
}

// Steady Poisson arrivals are one stage: no more than one of 200 records is cut.
func TestSteadyLoadIsOneStage(t *testing.T) {
	cut := 0
	for seed := range uint64(200) {
		if len(loadStages(process(poisson(100+seed), [2]float64{400, 3}))) > 1 {
			cut++
		}
	}
	if cut > 1 {
		t.Errorf("%d of 200 steady records are cut", cut)
	}
}

// Stages follow one another, hold every request and none twice, whatever the
// arrivals.
func TestStagesPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gaps := rapid.SliceOfN(rapid.Float64Range(0, 10), 1, 400).Draw(t, "gaps")
		a := make([]float64, len(gaps))
		for i := 1; i < len(a); i++ {
			a[i] = a[i-1] + gaps[i]
		}
		next := 0
		for _, s := range loadStages(a) {
			if s.first != next || s.end <= s.first || s.From != a[s.first] || s.To != a[s.end-1] ||
				s.Label == "" {
				t.Fatalf("stage %+v after request %d", s, next)
			}
			if n := s.end - s.first; n < stageLeast && n != len(a) {
				t.Fatalf("a stage of %d requests", n)
			}
			next = s.end
		}
		if next != len(a) {
			t.Fatalf("stages end at %d of %d requests", next, len(a))
		}
	})
}

// The published run's cut has its two stages, 5 and then 10 requests/s, and the
// client's pause between them.
func TestStagesOfARecord(t *testing.T) {
	m, err := records.Read(measuredRun)
	if err != nil {
		t.Fatal(err)
	}
	var a []float64
	for _, r := range m.Requests {
		a = append(a, r.At.Seconds())
	}
	var labels []string
	for _, s := range loadStages(a) {
		labels = append(labels, s.Label)
	}
	if want := []string{"4.5 req/s, 0-40 s", "9.2 req/s, 44-65 s"}; !slices.Equal(labels, want) {
		t.Errorf("stages %q, want %q", labels, want)
	}
}

const measuredRun = "../../traces/testdata/measured/llama2-7b_h100_codegen.csv.gz"
