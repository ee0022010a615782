package traces

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

var _ sim.Sessions = (*Stream)(nil)

// ofSessions is a workload of sessions with the default lengths.
func ofSessions(s *Spec) {
	s.Trace = Sessions
	s.FillSessions(func(string) bool { return false })
}

// all are the requests that a server of no time has.
func all(t testing.TB, s *Stream) (requests []sim.Arrival) {
	t.Helper()
	for a, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, a)
	}
	return requests
}

// A turn's prompt is the one before, its answer and what is new; sessions begin with system
// prompts, of which the first is the most popular.
func TestPromptsOfSessionsGrow(t *testing.T) {
	s := open(t, 1, func(s *Spec) {
		ofSessions(s)
		s.Requests, s.OutputScale, s.ThinkS, s.SystemPrompts = 3000, 1.5, 20, 3
	})
	last, systems, at := map[string]sim.Arrival{}, map[uint64]int{}, des.Time(0)
	later := 0
	for i, a := range all(t, s) {
		pieces, sum := a.Content.Prompt, 0
		for _, p := range pieces {
			sum += p.Tokens
		}
		if sum != a.Prompt || a.At < at {
			t.Fatalf("request %d: pieces of %d tokens, %+v", i, sum, a)
		}
		at = a.At
		before, known := last[a.Session]
		if !known {
			systems[pieces[0].ID]++
			if len(pieces) != 2 || pieces[0].Tokens != 1000 {
				t.Fatalf("session %s begins with %v", a.Session, pieces)
			}
		} else {
			later++
			n := len(before.Content.Prompt)
			if len(pieces) != n+2 || !slices.Equal(pieces[:n], before.Content.Prompt) ||
				pieces[n].ID != before.Content.Answer || pieces[n].Tokens != before.Output ||
				a.At <= before.At {
				t.Fatalf("session %s goes on from\n%+v %v with\n%+v %v", a.Session, before, before.Content,
					a, a.Content)
			}
		}
		last[a.Session] = a
	}
	if later < 1000 {
		t.Errorf("only %d later turns", later)
	}
	var counts []int
	for _, n := range systems {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	if n := len(last); len(counts) != 3 || math.Abs(float64(counts[2])/float64(n)-6./11) > 0.05 {
		t.Errorf("%d sessions begin with %v, want 6/11 of them with the first prompt", n, counts)
	}
}

// The default lengths have the published moments.
func TestSessionDefaultsArePublished(t *testing.T) {
	var s Spec
	ofSessions(&s)
	for _, c := range []struct {
		text            string
		mean, deviation float64
	}{
		{s.PromptLengths, 94.46, 626.39}, {s.OutputLengths, 348.45, 269.93}, {s.Turns, 3.51, math.NaN()},
	} {
		l, err := ParseLengths("k", c.text)
		if err != nil {
			t.Fatal(err)
		}
		const n = 1_000_000
		sum, squares := 0.0, 0.0
		for i := range n {
			v := float64(l.Quantile((float64(i) + 0.5) / n))
			sum, squares = sum+v, squares+v*v
		}
		mean := sum / n
		deviation := math.Sqrt(squares/n - mean*mean)
		if math.Abs(mean/c.mean-1) > 0.05 || math.Abs(deviation/c.deviation-1) > 0.15 {
			t.Errorf("%s: mean %.4g, deviation %.4g; want %g and %g", c.text, mean, deviation, c.mean,
				c.deviation)
		}
	}
	turns, _ := ParseLengths("k", s.Turns)
	if turns.Quantile(0.25) != 1 || turns.Quantile(0.29) != 2 {
		t.Errorf("%s: not 73 %% of sessions have two turns and more", s.Turns)
	}
}

// Equal seeds give equal requests; the n-th session is the same at any rate, however long its
// turns take, and with any system prompts but for them.
func TestSessionsRepeat(t *testing.T) {
	run := func(seed uint64, change func(*Spec)) map[string][]sim.Arrival {
		s := open(t, seed, func(s *Spec) { ofSessions(s); s.Requests = 400; change(s) })
		of := map[string][]sim.Arrival{}
		for _, a := range all(t, s) {
			of[a.Session] = append(of[a.Session], a)
		}
		return of
	}
	a := run(1, func(*Spec) {})
	if !reflect.DeepEqual(a, run(1, func(*Spec) {})) {
		t.Error("equal seeds differ")
	}
	if reflect.DeepEqual(a["s1"], run(2, func(*Spec) {})["s1"]) {
		t.Error("different seeds are the same")
	}
	for name, change := range map[string]func(*Spec){
		"rate": func(s *Spec) { s.Rate = 7 },
		"closed": func(s *Spec) {
			s.Arrivals, s.Concurrency = ArrivalsClosed, 4
		},
	} {
		compared := 0
		for session, turns := range run(1, change) {
			for i := range min(len(turns), len(a[session])) {
				if x, y := a[session][i], turns[i]; x.Prompt != y.Prompt || x.Output != y.Output ||
					!reflect.DeepEqual(x.Content, y.Content) {
					t.Fatalf("%s: turn %d of %s is %+v, was %+v", name, i, session, y, x)
				}
				compared++
			}
		}
		if compared < 100 {
			t.Errorf("%s: only %d turns compared", name, compared)
		}
	}
}

// A rejection ends its session; requests beyond those asked for are said.
func TestSessionsThatEndEarly(t *testing.T) {
	s := open(t, 1, func(s *Spec) {
		ofSessions(s)
		s.Turns, s.Requests = "fixed(3)", 5
	})
	next := func() sim.Arrival {
		a, ok, err := s.Next()
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		return a
	}
	first, second := next(), next()
	if a, ok, err := s.Follow(first, first.At, true); ok || err != nil {
		t.Fatalf("%+v follows a rejection, %v", a, err)
	}
	if _, ok, _ := s.Follow(first, first.At, false); ok {
		t.Error("a session that has ended goes on")
	}
	for range 2 {
		a, ok, err := s.Follow(second, second.At, false)
		if !ok || err != nil || a.Session != second.Session || a.At < second.At {
			t.Fatalf("%+v follows %+v, %v", a, second, err)
		}
		second = a
	}
	if _, ok, _ := s.Follow(second, second.At, false); ok {
		t.Error("a fourth turn of three")
	}
	third := next()
	if _, ok, _ := s.Next(); ok {
		t.Error("a sixth request of five")
	}
	if _, ok, _ := s.Follow(third, third.At, false); ok {
		t.Error("a sixth request of five")
	}
	want := []string{"1 session ended early: a turn was rejected",
		"1 session had turns left beyond workload.requests"}
	if got := warn.Texts(s.Warnings()); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSessionsRefused(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		`sessions.turns = "many": want a distribution`: func(s *Spec) { s.Turns = "many" },
		`sessions.turns = "": of sessions it must be`:  func(s *Spec) { s.Turns = "" },
		`sessions.system_lengths = "": of sessions`:    func(s *Spec) { s.SystemLengths = "" },
		"sessions.system_prompts = -1":                 func(s *Spec) { s.SystemPrompts = -1 },
		"sessions.system_zipf = NaN":                   func(s *Spec) { s.SystemZipf = math.NaN() },
		"workload.prefix_hit = 0.5: workload.trace":    func(s *Spec) { s.PrefixHit = .5 },
		`workload.arrivals = "trace": a made-up trace`: func(s *Spec) { s.Arrivals = "trace" },
		`workload.prefix_hit = 1: workload.trace = "testdata/mooncake.jsonl"`: func(s *Spec) {
			s.Trace, s.PrefixHit, s.ThinkS = "testdata/mooncake.jsonl", 1, 0
		},
		"workload.think_s = 5: testdata/own.csv has no sessions": func(s *Spec) {
			s.Trace, s.ThinkS = "testdata/own.csv", 5
		},
	} {
		spec := DefaultSpec()
		ofSessions(&spec)
		change(&spec)
		if _, err := Open(spec, 1); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Of whole sessions the requests are the same however they arrive and however fast they are
// served; as many requests are cut where time has it.
func TestWholeSessionsAreTheSameEverywhere(t *testing.T) {
	served := func(change func(*Spec)) (texts []string) {
		s := open(t, 1, func(s *Spec) {
			ofSessions(s)
			s.ThinkS = 5
			change(s)
		})
		for _, a := range all(t, s) {
			texts = append(texts, fmt.Sprintln(a.Session, a.Prompt, a.Output, a.Content.Prompt))
		}
		if w := s.Warnings(); len(w) > 0 && strings.Contains(strings.Join(warn.Texts(w), ""), "left") {
			t.Errorf("warnings %q", w)
		}
		slices.Sort(texts)
		return texts
	}
	whole := func(rate float64) func(*Spec) {
		return func(s *Spec) { s.Requests, s.Sessions, s.Rate = 0, 40, rate }
	}
	slow, names := served(whole(0.01)), map[string]bool{}
	for _, text := range slow {
		name, _, _ := strings.Cut(text, " ")
		names[name] = true
	}
	if len(names) != 40 || len(slow) < 80 {
		t.Fatalf("%d requests of %d sessions, want 40", len(slow), len(names))
	}
	if !slices.Equal(slow, served(whole(100))) {
		t.Error("another rate has other requests")
	}
	if !slices.Equal(slow, served(func(s *Spec) {
		whole(0)(s)
		s.Arrivals, s.Concurrency = ArrivalsClosed, 3
	})) {
		t.Error("clients have other requests")
	}
	forty := SessionSpec{Sessions: 40, Turns: "fixed(3)"}
	if n := Count(Spec{Trace: Sessions, SessionSpec: forty}); n != 120 {
		t.Errorf("a progress bar of 40 sessions of 3 turns counts to %d", n)
	}
}

func TestWholeSessionsErrors(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"workload.requests = 5: sessions.count = 2 says how many there are; " +
			"leave one out": func(s *Spec) { s.Sessions, s.Requests = 2, 5 },
		"sessions.count = 2: workload.stages end the run; leave one out": func(s *Spec) {
			s.Sessions, s.Requests, s.Stages = 2, 0, [][]float64{{10, 1}}
		},
	} {
		s := DefaultSpec()
		ofSessions(&s)
		change(&s)
		if err := s.Validate(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
