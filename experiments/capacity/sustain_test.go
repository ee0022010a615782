package capacity

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces"
)

// server answers a request in two seconds by itself, and at most as many a second as capacity says.
// One that thrashes answers a tenth of that once more arrive.
type server struct {
	capacity  float64
	thrashes  bool
	processed int
}

func (s *server) run(_ context.Context, p config.Point, sink run.Sink) (sum metrics.Summary,
	err error) {
	const alone = 2.0
	w := &p.Workload
	if w.Arrivals == traces.ArrivalsClosed {
		return metrics.Summary{Completed: w.Requests, SimulatedS: alone * float64(w.Requests) /
			float64(w.Concurrency)}, nil
	}
	gap := 1 / min(w.Rate, s.capacity)
	if w.Rate > s.capacity && s.thrashes {
		gap *= 10
	}
	for i := range w.Requests {
		s.processed++
		end := alone + float64(i)*gap
		sum.Completed++
		sink.Watch.Ended(&metrics.Request{LastToken: des.Time(end * float64(des.Second))})
		if err = sink.Watch.Enough(); err != nil {
			break
		}
	}
	return sum, err
}

func choose(t *testing.T, servers map[string]*server, sets ...string) ([]config.Point,
	[]Sustained) {
	t.Helper()
	c, err := config.Load("", append(sets, "model=llama3.1-8b", "gpu=h100-80gb"))
	if err != nil {
		t.Fatal(err)
	}
	variants := [][]config.Point{c}
	all, err := ChooseRates(t.Context(), func(ctx context.Context, p config.Point, sink run.Sink) (
		metrics.Summary, error) {
		one := *servers[p.System.Name]
		return one.run(ctx, p, sink)
	}, variants)
	if err != nil {
		t.Fatal(err)
	}
	return variants[0], all[0].Systems
}

// ratesOf lists the rates of runs.
func ratesOf(runs []config.Point) (rates []float64) {
	for _, p := range runs {
		if !slices.Contains(rates, p.Workload.Rate) {
			rates = append(rates, p.Workload.Rate)
		}
	}
	return rates
}

// What a server sustains is found to within the last of the steps, also where it collapses beyond.
func TestSustainedIsWhatAServerKeepsUpWith(t *testing.T) {
	servers := map[string]*server{"vllm": {capacity: 3}, "vllm-so": {capacity: 3, thrashes: true}}
	_, all := choose(t, servers, "system.preset=vllm,vllm-so")
	for _, s := range all {
		if s.Rate < 3*0.84*keepsUp || s.Rate > 3.05 {
			t.Errorf("%s sustains %g requests/s, want 3", s.System, s.Rate)
		}
	}
}

// Five rates for all systems, from a fifth of the weakest that is useful to a tenth beyond the
// best.
func TestRatesFor(t *testing.T) {
	for _, c := range []struct {
		sustained []float64
		want      []float64
	}{
		{[]float64{1}, []float64{0.2, 0.43, 0.65, 0.88, 1.1}},
		{[]float64{10, 5}, []float64{1, 3.5, 6, 8.5, 11}},
		{[]float64{10, 2}, []float64{2, 4.2, 6.5, 8.8, 11}}, // 2 is no quarter of 10
		{[]float64{0, 1}, []float64{0.2, 0.43, 0.65, 0.88, 1.1}},
		{[]float64{0}, []float64{1}},
	} {
		var all []Sustained
		for _, r := range c.sustained {
			all = append(all, Sustained{Rate: r})
		}
		if got := ratesFor(all); !slices.Equal(got, c.want) {
			t.Errorf("of %v: %v, want %v", c.sustained, got, c.want)
		}
	}
}

// Variants of one model and traffic have the same rates, and each system is measured once; other
// traffic has rates of its own.
func TestVariantsHaveTheSameRates(t *testing.T) {
	var all [][]config.Point
	for _, sets := range [][]string{{"seed=1", "slo.tbt_s=1"}, {"seed=2"}, {"system.max_requests=8"},
		{"workload.output_scale=2"}, {"workload.rate=7"}} {
		c, err := config.Load("", append(sets, "model=llama3.1-8b", "gpu=h100-80gb",
			"system.preset=vllm"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	chosen, err := ChooseRates(t.Context(), func(ctx context.Context, p config.Point,
		sink run.Sink) (metrics.Summary, error) {
		capacity := 3.0
		if p.System.MaxRequests == 8 {
			capacity = 2
		}
		one := server{capacity: capacity / p.Workload.OutputScale}
		return one.run(ctx, p, sink)
	}, all)
	if err != nil || len(chosen) != 2 || len(chosen[0].Systems) != 2 || len(chosen[1].Systems) != 1 {
		t.Fatalf("%v, %v", chosen, err)
	}
	if !strings.Contains(chosen[0].String(), "(vllm 2 to 3 requests/s)") {
		t.Errorf("%s", &chosen[0])
	}
	for i, want := range [][]float64{chosen[0].Rates, chosen[0].Rates, chosen[0].Rates,
		chosen[1].Rates, {7}} {
		if got := ratesOf(all[i]); !slices.Equal(got, want) || all[i][0].NoRate {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
	if slices.Equal(chosen[0].Rates, chosen[1].Rates) {
		t.Errorf("outputs twice as long have the same rates, %v", chosen[1].Rates)
	}
}

// A run has enough requests to turn over ten times what is in flight: at 100 requests/s of 2 s each
// by themselves 10 x 200; and at least the configured number.
func TestRequestsOfChosenRates(t *testing.T) {
	for _, c := range []struct {
		capacity float64
		sets     []string
		want     int
	}{
		{3, nil, chosenRequests},
		{60, nil, 1200},
		{3, []string{"workload.requests=40"}, 40},
	} {
		got, all := choose(t, map[string]*server{"vllm": {capacity: c.capacity}},
			append(c.sets, "system.preset=vllm")...)
		n := got[0].Workload.Requests
		if n < c.want*7/10 || n > c.want*11/10 {
			t.Errorf("at %v: %d requests, want about %d", all, n, c.want)
		}
		if got[0].NoRate {
			t.Error("rates are still to be chosen")
		}
	}
}

// The choice is the same each time, of runs of the simulator too, and turns of sessions are
// refused.
func TestChosenRatesAreTheSameEachTime(t *testing.T) {
	var first []float64
	for range 2 {
		c, err := config.Load("", []string{"model=llama3.1-8b", "gpu=h100-80gb",
			"system.preset=vllm-0.15",
			"workload.prompt_lengths=fixed(2000)", "workload.output_lengths=fixed(20)"})
		if err != nil {
			t.Fatal(err)
		}
		variants := [][]config.Point{c}
		all, err := ChooseRates(t.Context(), run.NewSimulator().Run, variants)
		if err != nil {
			t.Fatal(err)
		}
		rates := ratesOf(variants[0])
		if first != nil && !slices.Equal(first, rates) || len(rates) != chosenRates ||
			all[0].Systems[0].Rate < 5 {
			t.Errorf("%v of %v, before %v", rates, all, first)
		}
		first = rates
	}
	p := config.Point{NoRate: true}
	p.Workload.Trace = traces.Sessions
	if _, err := ChooseRates(t.Context(), nil, [][]config.Point{{p}}); err == nil ||
		errors.Is(err, errSeen) {
		t.Errorf("sessions: %v", err)
	}
}
