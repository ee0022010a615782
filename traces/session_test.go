package traces

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// Sessions are read where a file has the column, quoted or not; others have none.
func TestSessions(t *testing.T) {
	for name, text := range map[string]string{
		FormatCSV: "arrived_s,prompt_tokens,output_tokens,set,session\n" +
			"0,900,3,a,17\n1,40,2,a,\"x,y\"\n2,5,5,,\n",
		FormatBurstGPT: "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total " +
			"tokens,Log Type\n5,17,2,ChatGPT,472,18,490,Conversation " +
			"log\n6,\"x,y\",2,ChatGPT,472,18,490,Conversation log\n45,,3,GPT-4,10,20,30,API log\n",
		FormatAzure: "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 " +
			"18:15:46.68,374,44\n2023-11-16 18:15:47.68,374,44\n2023-11-16 18:15:48.68,374,44\n",
	} {
		path := filepath.Join(t.TempDir(), "trace.csv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Spec{Trace: path, Arrivals: ArrivalsTrace, Speed: 1, OutputScale: 1,
			LongBenchSpec: LongBenchSpec{Datasets: AllSets(), Output: "base"}, Burstiness: 1}, 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := []string{"17", "x,y", ""}
		if name == FormatAzure {
			want = []string{"", "", ""}
		}
		all := collect(t, s)
		if len(all) != len(want) {
			t.Fatalf("%s: %d requests, want %d", name, len(all), len(want))
		}
		for i := range all {
			if all[i].Session != want[i] {
				t.Errorf("%s: session %d is %q, want %q", name, i, all[i].Session, want[i])
			}
		}
	}
}

// Turns of recorded times that come before the last one has ended are counted.
func TestTurnsThatOverlap(t *testing.T) {
	path := writeFile(t, "trace.csv", "arrived_s,prompt_tokens,output_tokens,session\n"+
		"0,9,3,a\n1,9,3,a\n5,9,3,a\n5,9,3,b\n6,9,3,\n6,9,3,\n6,9,3,a\n")
	s := open(t, 1, func(s *Spec) { s.Trace, s.Requests, s.Arrivals = path, 0, ArrivalsTrace })
	all := collect(t, s)
	// the second turn arrives before the first ends, and ends before it; so does the fourth
	for _, end := range []struct {
		request int
		seconds float64
	}{{1, 2}, {0, 3}, {2, 9}, {6, 7}, {3, 9}, {4, 9}, {5, 9}} {
		at := des.FromSeconds(end.seconds)
		if _, ok, err := s.Follow(all[end.request], at, false); ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	w := warn.Texts(s.Warnings())
	if len(w) != 1 ||
		!strings.HasPrefix(w[0], "2 turns of sessions arrived before") ||
		!strings.HasSuffix(w[0], "served as recorded: the first in "+path+":3, session a") {
		t.Errorf("%q", w)
	}
}

// A turn counts once, whichever of those before it end after it has begun, and in whichever order.
func TestTurnsThatOverlapCountOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		turns [][2]float64 // arrival and end, in seconds
		want  int
	}{
		{"the first ends second", [][2]float64{{0, 10}, {2, 8}, {5, 12}}, 2},
		{"the first ends last", [][2]float64{{0, 10}, {2, 4}, {3, 6}}, 2},
		{"one after another", [][2]float64{{0, 2}, {2, 8}, {8, 12}}, 0},
		{"in turn", [][2]float64{{0, 3}, {2, 6}, {5, 12}}, 2},
	} {
		var o overlaps
		for i, turn := range c.turns {
			o.begin(&sim.Arrival{Session: "a", At: des.FromSeconds(turn[0])}, i+1)
		}
		byEnd := slices.SortedFunc(slices.Values(c.turns), func(a, b [2]float64) int {
			return cmp.Compare(a[1], b[1])
		})
		for _, turn := range byEnd {
			o.end(&sim.Arrival{Session: "a", At: des.FromSeconds(turn[0])}, des.FromSeconds(turn[1]))
		}
		if o.n != c.want || len(o.open) > 0 {
			t.Errorf("%s: %d turns, want %d; %d sessions are open", c.name, o.n, c.want, len(o.open))
		}
	}
}

// A turn does not come before the one before it has ended: drawn times are refused, except for a
// single client, which waits, and for rows without content.
func TestDrawnTimesOfTurns(t *testing.T) {
	const text = "9,3,a,7:9\n9,3,b,7:9\n9,3,,7:9\n9,3,,7:9\n9,3,a,7:9\n9,3,b,7:9\n"
	timed := "arrived_s,prompt_tokens,output_tokens,session,content\n0," +
		strings.TrimSuffix(strings.ReplaceAll(text, "\n", "\n1,"), "1,")
	untimed := "prompt_tokens,output_tokens,session,content\n" + text
	once := "prompt_tokens,output_tokens,session,content\n9,3,a,7:9\n9,3,b,7:9\n"
	unknown := strings.ReplaceAll(untimed, "7:9", "")
	for name, c := range map[string]struct {
		text   string
		change func(*Spec)
		n      int
		fails  bool
	}{
		"poisson":       {timed, func(s *Spec) {}, 4, true},
		"without times": {untimed, func(s *Spec) { s.Arrivals = ArrivalsFixed }, 4, true},
		"stages":        {timed, func(s *Spec) { s.Rate, s.Stages = 0, [][]float64{{1e3, 1}} }, 4, true},
		"clients": {
			timed, func(s *Spec) { s.Arrivals, s.Concurrency = ArrivalsClosed, 2 }, 4, true},
		"a client": {
			timed, func(s *Spec) { s.Arrivals, s.Concurrency = ArrivalsClosed, 1 }, 6, false},
		"recorded": {timed, func(s *Spec) { s.Arrivals = ArrivalsTrace }, 6, false},
		"one turn": {once, func(s *Spec) {}, 2, false},
		"unknown":  {unknown, func(s *Spec) { s.Arrivals = ArrivalsFixed }, 6, false},
	} {
		s := open(t, 1, func(s *Spec) {
			s.Trace, s.Requests = writeFile(t, "trace.csv", c.text), 0
			c.change(s)
		})
		var err error
		n := 0
		for ok := true; ok; {
			if _, ok, err = s.Next(); ok {
				n++
			}
		}
		if n != c.n || (err != nil) != c.fails {
			t.Errorf("%s: %d requests, %v, want %d", name, n, err, c.n)
		}
		var e *rows.Error
		if c.fails && (!errors.As(err, &e) || e.Line != 6 || e.Key != "session" || e.Value != "a" ||
			!strings.HasPrefix(err.Error(), "workload.arrivals = ")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
