package traces

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

var _ sim.ClosedLoop = (*Stream)(nil)

// short makes requests of a few tokens, of which tests look at the times.
func shortRequests(s *Spec) {
	s.Trace, s.PromptLengths, s.OutputLengths = Synthetic, "fixed(10)", "fixed(2)"
}

// Each stage has as many requests as its seconds and rate say, within five standard deviations.
func TestRequestsOfStages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stages [][]float64
		for range rapid.IntRange(1, 5).Draw(t, "stages") {
			stages = append(stages, []float64{
				rapid.Float64Range(10, 500).Draw(t, "seconds"),
				rapid.SampledFrom([]float64{0, 0.5, 3, 7}).Draw(t, "rate"),
			})
		}
		stages = append(stages, []float64{100, 5})
		spec := DefaultSpec()
		shortRequests(&spec)
		spec.Arrivals = rapid.SampledFrom([]string{ArrivalsPoisson, ArrivalsGamma, ArrivalsFixed}).Draw(t,
			"arrivals")
		spec.Stages, spec.Rate, spec.Requests, spec.Burstiness = stages, 0, 0, 0.5
		w, err := Open(spec, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		counts := make([]float64, len(stages))
		last := des.Time(0)
		for {
			a, ok, err := w.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if a.At < last {
				t.Fatalf("%v after %v", a.At, last)
			}
			last = a.At
			i, at := 0, a.At.Seconds()
			for i < len(stages)-1 && at >= stages[i][0] {
				at -= stages[i][0]
				i++
			}
			counts[i]++
		}
		cv := map[string]float64{ArrivalsPoisson: 1, ArrivalsGamma: 0.5, ArrivalsFixed: 0}[spec.Arrivals]
		for i, stage := range stages {
			want := stage[0] * stage[1]
			if math.Abs(counts[i]-want) > 5*cv*math.Sqrt(want)+2 {
				t.Fatalf("stage %d of %v: %v requests, want %v", i+1, stages, counts[i], want)
			}
		}
		_, seconds := spec.Expected()
		if last.Seconds() > seconds+1e-6 {
			t.Fatalf("a request at %v, after the last stage of %v", last, stages)
		}
	})
}

// With a number of requests the last stage goes on until they are out.
func TestLastStageGoesOn(t *testing.T) {
	all := collect(t, open(t, 1, func(s *Spec) {
		shortRequests(s)
		s.Arrivals, s.Rate, s.Stages, s.Requests = ArrivalsFixed, 0,
			[][]float64{{10, 1}, {5, 0}, {1, 2}}, 30
	}))
	if len(all) != 30 || all[8].At != 9*des.Second || all[9].At != 15*des.Second ||
		all[29].At != 25*des.Second {
		t.Errorf("%d requests, the 9th at %v, 10th %v, last %v; want 9, 15 and 25 s", len(all), all[8].At,
			all[9].At, all[len(all)-1].At)
	}
}

// One stage is the process at its rate.
func TestOneStageIsARate(t *testing.T) {
	at := func(change func(*Spec)) []sim.Arrival {
		return collect(t, open(t, 3, func(s *Spec) { shortRequests(s); s.Requests = 500; change(s) }))
	}
	rate := at(func(s *Spec) { s.Rate = 4 })
	staged := at(func(s *Spec) { s.Rate, s.Stages = 0, [][]float64{{1, 4}} })
	for i := range rate {
		if d := rate[i].At - staged[i].At; max(d, -d) > 500*des.Nanosecond {
			t.Fatalf("request %d at %v, in one stage at %v", i+1, rate[i].At, staged[i].At)
		}
	}
}

func TestStagesRefused(t *testing.T) {
	for _, c := range []struct {
		stages   [][]float64
		requests int
		want     string
	}{
		{[][]float64{{600}}, 0, "stage 1 has 1 number; want [[seconds, requests/s], ...], as in [[600, " +
			"5], [600, 10]]"},
		{[][]float64{{600, 5}, {0, 5}}, 0, "stage 2 lasts 0 s"},
		{[][]float64{{600, -5}}, 0, "stage 1 has -5 requests/s"},
		{[][]float64{{600, math.NaN()}}, 0, "stage 1 has NaN requests/s"},
		{[][]float64{{math.Inf(1), 1}}, 0, "stage 1 lasts +Inf s"},
		{[][]float64{{600, 0}}, 0, "ends without a request"},
		{[][]float64{{600, 1}, {600, 0}}, 10, "stage 2 goes on until workload.requests = 10 are out"},
		{[][]float64{{1e9, 1e9}}, 0, "set workload.requests"},
	} {
		spec := DefaultSpec()
		shortRequests(&spec)
		spec.Rate, spec.Stages, spec.Requests = 0, c.stages, c.requests
		if err := spec.Validate(); err == nil || !strings.HasPrefix(err.Error(), "workload.stages = ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.stages, err)
		}
	}
}

// Rows of a file beyond the stages are warned of.
func TestStagesEndBeforeTheFile(t *testing.T) {
	s := open(t, 1, func(s *Spec) {
		s.Trace, s.Arrivals, s.Rate, s.Requests = "testdata/vidur.csv", ArrivalsFixed, 0, 0
		s.Stages = [][]float64{{2.5, 1}}
	})
	served := len(collect(t, s))
	warnings := strings.Join(warn.Texts(s.Warnings()), "\n")
	if served != 2 || !strings.Contains(warnings,
		"left out beyond workload.stages: testdata/vidur.csv") {
		t.Errorf("%d requests, warnings %q", served, warnings)
	}
}

// A client's next request follows the end of its last by an exponential time.
func TestClientsThink(t *testing.T) {
	const n = 20_000
	s := open(t, 1, func(s *Spec) {
		shortRequests(s)
		s.Arrivals, s.Concurrency, s.ThinkS, s.Rate, s.Requests = ArrivalsClosed, 8, 2.5, 0, n
	})
	if s.Concurrency() != 8 {
		t.Errorf("%d clients", s.Concurrency())
	}
	var sum, squares float64
	for i := range n {
		ended := des.Time(i) * des.Second
		s.Ended(ended)
		a, ok, err := s.Next()
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		think := (a.At - ended).Seconds()
		if think < 0 {
			t.Fatalf("arrives at %v, the last ended at %v", a.At, ended)
		}
		sum, squares = sum+think, squares+think*think
	}
	if mean := sum / n; math.Abs(mean-2.5) > 0.1 || math.Abs(squares/n/(2*mean*mean)-1) > 0.1 {
		t.Errorf("thinks %v s, mean square %v; want 2.5 and twice its square", mean, squares/n)
	}
	if _, ok, err := s.Next(); ok || err != nil {
		t.Errorf("after the last request: %v, %v", ok, err)
	}
	s = open(t, 1, func(s *Spec) {
		shortRequests(s)
		s.Arrivals, s.Concurrency, s.ThinkS, s.Rate = ArrivalsClosed, 1, 1e6, 0
	})
	s.Ended(rows.Latest - des.Second)
	if _, _, err := s.Next(); err == nil ||
		!strings.Contains(err.Error(), "workload.think_s = 1e+06 is too long") {
		t.Errorf("beyond what time can hold: %v", err)
	}
}
