package traces

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

var _ sim.Workload = (*Stream)(nil)

func open(t testing.TB, seed uint64, change func(*Spec)) *Stream {
	t.Helper()
	spec := DefaultSpec()
	change(&spec)
	s, err := Open(spec, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func collect(t testing.TB, s *Stream) []sim.Arrival { return slices.Collect(requests(t, s)) }

// Any valid spec gives the requests asked for, each valid, in order of time;
// again the same for the same seed.
func TestStreamOfAnySpec(t *testing.T) {
	table := setNames(loadTable())
	rapid.Check(t, func(rt *rapid.T) {
		spec := DefaultSpec()
		spec.Datasets = rapid.SliceOfNDistinct(rapid.SampledFrom(table), 1, len(table),
			rapid.ID[string]).Draw(rt, "datasets")
		spec.Arrivals = rapid.SampledFrom(valuesOf("Arrivals")[:3]).Draw(rt, "arrivals")
		spec.Rate = math.Exp(rapid.Float64Range(-10, 20).Draw(rt, "log rate"))
		spec.Burstiness = rapid.Float64Range(0.01, 10).Draw(rt, "burstiness")
		spec.Requests = rapid.IntRange(1, 50).Draw(rt, "requests")
		spec.Output = rapid.SampledFrom(valuesOf("Output")).Draw(rt, "output")
		spec.OutputScale = math.Exp(rapid.Float64Range(-10, 10).Draw(rt, "log scale"))
		spec.Tokenizer = rapid.SampledFrom([]string{"", "llama2", "llama3"}).Draw(rt, "tokenizer")
		seed := rapid.Uint64().Draw(rt, "seed")
		read := func() []sim.Arrival {
			s, err := Open(spec, seed)
			if err != nil {
				rt.Fatal(err)
			}
			return collect(t, s)
		}
		as := read()
		if len(as) != spec.Requests {
			rt.Fatalf("%d requests, want %d", len(as), spec.Requests)
		}
		last := des.Time(0)
		for i, a := range as {
			if a.At < last || a.Prompt < 1 || a.Output < 1 || !slices.Contains(spec.Datasets, a.Set) {
				rt.Fatalf("request %d is %+v, after %v", i, a, last)
			}
			last = a.At
		}
		if !slices.Equal(as, read()) {
			rt.Fatal("equal seeds differ")
		}
	})
}

// Gaps have the mean 1/rate and the coefficient of variation of their process.
func TestArrivalProcesses(t *testing.T) {
	const n = 20_000
	check := func(rt *rapid.T, arrivals string, rate, cv float64, seed uint64) {
		spec := DefaultSpec()
		spec.Arrivals, spec.Rate, spec.Burstiness = arrivals, rate, cv
		p := newProcess(spec, seed)
		gaps, last := make([]float64, n), des.Time(0)
		for i := range gaps {
			at, err := p.next()
			if err != nil {
				rt.Fatal(err)
			}
			gaps[i], last = (at - last).Seconds(), at
		}
		if arrivals == ArrivalsFixed {
			cv = 0
		} else if arrivals == ArrivalsPoisson {
			cv = 1
		}
		mean, sd := stat.MeanStdDev(gaps, nil)
		if slip := 5*cv/math.Sqrt(n) + 1e-6; math.Abs(mean*rate-1) > slip {
			rt.Fatalf("mean gap x rate = %v, want 1 within %v", mean*rate, slip)
		}
		// The spread of a sample's own CV grows with the tail of a gamma:
		// kurtosis 6 cv^2 + 3.
		if slip := 5*cv*math.Sqrt((6*cv*cv+3)/n) + 1e-6; math.Abs(sd/mean-cv) > slip {
			rt.Fatalf("coefficient of variation %v, want %v within %v", sd/mean, cv, slip)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		check(rt,
			rapid.SampledFrom(valuesOf("Arrivals")[:3]).Draw(rt, "arrivals"),
			// to 50/s: above, nanoseconds show in fixed gaps
			math.Exp(rapid.Float64Range(-6, 4).Draw(rt, "log rate")),
			rapid.Float64Range(0.1, 4).Draw(rt, "burstiness"),
			rapid.Uint64().Draw(rt, "seed"))
	})
}

func TestFixedArrivalsDoNotDrift(t *testing.T) {
	s := open(t, 1, func(s *Spec) { s.Arrivals, s.Rate, s.Requests = ArrivalsFixed, 3, 300_000 })
	n := 0
	for a := range requests(t, s) {
		n++
		if want := des.FromSeconds(float64(n) / 3); max(a.At-want, want-a.At) > 1 {
			t.Fatalf("request %d at %v, want %v", n, a.At, want)
		}
	}
}

func TestArrivalsBeyondTimeAreAnError(t *testing.T) {
	s := open(t, 1, func(s *Spec) { s.Arrivals, s.Rate = ArrivalsFixed, 1e-9 })
	made := 0
	for {
		_, ok, err := s.Next()
		if err != nil {
			if made != 9 || !strings.Contains(err.Error(), "workload.rate") {
				t.Errorf("after %d requests: %v", made, err)
			}
			return
		}
		if !ok {
			t.Fatal("time ran past what it can hold")
		}
		made++
	}
}

func TestLengthsDoNotMoveWithArrivals(t *testing.T) {
	lengths := func(change func(*Spec)) []sim.Arrival {
		as := collect(t, open(t, 5, change))
		for i := range as {
			as[i].At = 0
		}
		return as
	}
	base := lengths(func(s *Spec) {})
	for name, change := range map[string]func(*Spec){
		"rate":  func(s *Spec) { s.Rate = 3 },
		"gamma": func(s *Spec) { s.Arrivals, s.Burstiness = ArrivalsGamma, 4 },
		"fixed": func(s *Spec) { s.Arrivals = ArrivalsFixed },
	} {
		if !slices.Equal(base, lengths(change)) {
			t.Errorf("lengths change with %s", name)
		}
	}
	scaled := lengths(func(s *Spec) { s.OutputScale = 2 })
	for i, a := range base {
		if a.Output *= 2; a != scaled[i] {
			t.Fatalf("request %d is %+v at output scale 2, want %+v", i, scaled[i], a)
		}
	}
	if other := collect(t, open(t, 6, func(*Spec) {})); slices.EqualFunc(base, other,
		func(a, b sim.Arrival) bool { return a.Prompt == b.Prompt }) {
		t.Error("different seeds give equal lengths")
	}
}

func TestOutputScaleKeepsAToken(t *testing.T) {
	for a := range requests(t, open(t, 1, func(s *Spec) { s.OutputScale = 1e-6 })) {
		if a.Output != 1 {
			t.Fatalf("%+v, want 1 output token", a)
		}
	}
	s := open(t, 1, func(s *Spec) { s.OutputScale, s.Rate = 1e6, 1e9 })
	a, ok, err := s.Next()
	if err != nil || !ok || a.Output < 1e6 {
		t.Errorf("%+v %v %v", a, ok, err)
	}
}

func TestModelPicksTheTokenizer(t *testing.T) {
	first := func(spec Spec, model ...Tokenizer) int {
		s, err := Open(spec, 1, model...)
		if err != nil {
			t.Fatal(err)
		}
		a, _, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		return a.Prompt
	}
	spec := DefaultSpec()
	named := spec
	named.Tokenizer = "llama3"
	if l2, l3 := first(spec, Llama2), first(spec, Llama3); l3 >= l2 || first(spec) != l2 ||
		first(named, Llama2) != l3 {
		t.Errorf("prompt %d under Llama-2, %d under Llama-3, %d by default, %d as named", l2, l3,
			first(spec), first(named, Llama2))
	}
	if _, err := Open(spec, 1, "gpt2"); err == nil || !strings.Contains(err.Error(), `"gpt2"`) {
		t.Errorf("unknown tokenizer of a model: %v", err)
	}
}

func TestReplay(t *testing.T) {
	replayed := func(speed float64) (at []des.Time) {
		for a := range requests(t, open(t, 1, func(s *Spec) {
			s.Trace, s.Arrivals, s.Speed = "testdata/burstgpt.csv", ArrivalsTrace, speed
		})) {
			at = append(at, a.At)
		}
		return at
	}
	s := des.Second
	if got, want := replayed(1),
		[]des.Time{0, 40 * s, 113 * s, 139*s + s/2}; !slices.Equal(got, want) {
		t.Errorf("at speed 1: %v, want %v", got, want)
	}
	if got, want := replayed(4), []des.Time{0, 10 * s, 28*s + s/4, 34*s + 7*s/8}; !slices.Equal(
		got, want) {
		t.Errorf("at speed 4: %v, want %v", got, want)
	}
	slow := open(t, 1, func(s *Spec) {
		s.Trace, s.Arrivals, s.Speed = "testdata/burstgpt.csv",
			ArrivalsTrace, 1e-9
	})
	if _, _, err := slow.Next(); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := slow.Next(); ok || err == nil ||
		!strings.Contains(err.Error(), "workload.speed = 1e-09") {
		t.Errorf("time overflow: %v", err)
	}
}
