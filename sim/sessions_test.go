package sim_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

const thinks = 3 * des.Millisecond

// talks is a workload of sessions of given turns; each turn comes a while after the last one.
type talks struct {
	turns   [][]sim.Arrival // by session; the first has the session's time
	next    int
	told    map[string]des.Time // when the turn of a name ended
	refused map[string]bool
}

func (w *talks) Next() (sim.Arrival, bool, error) {
	if w.next == len(w.turns) {
		return sim.Arrival{}, false, nil
	}
	w.next++
	return w.turns[w.next-1][0], true, nil
}

func (w *talks) Follow(a sim.Arrival, at des.Time, rejected bool) (sim.Arrival, bool, error) {
	w.told[a.Set], w.refused[a.Set] = at, rejected
	var session, turn int
	if _, err := fmt.Sscan(a.Set, &session, &turn); err != nil {
		return a, false, err
	}
	if rejected || turn+1 == len(w.turns[session]) {
		return a, false, nil
	}
	next := w.turns[session][turn+1]
	next.At = at + thinks
	return next, true, nil
}

// loopedTalks are talks of clients, each with a session at a time.
type loopedTalks struct {
	*talks
	clients int
	ended   des.Time
}

func (w *loopedTalks) Concurrency() int  { return w.clients }
func (w *loopedTalks) Ended(at des.Time) { w.ended = at }
func (w *loopedTalks) Next() (sim.Arrival, bool, error) {
	a, ok, err := w.talks.Next()
	a.At = w.ended
	return a, ok, err
}

// talking makes sessions of the scenario's requests, whose workload is started anew.
func talking(t *rapid.T, c *scenario) func() (sim.Workload, *talks) {
	var turns [][]sim.Arrival
	for _, a := range c.arrivals {
		if n := len(turns); n == 0 || rapid.Bool().Draw(t, "new session") {
			turns = append(turns, nil)
		}
		n := len(turns) - 1
		a.Session, a.Set = fmt.Sprint(n), fmt.Sprint(n, len(turns[n]))
		turns[n] = append(turns[n], a)
	}
	clients := rapid.IntRange(0, 3).Draw(t, "clients")
	return func() (sim.Workload, *talks) {
		w := &talks{turns: turns, told: map[string]des.Time{}, refused: map[string]bool{}}
		if clients > 0 {
			return &loopedTalks{talks: w, clients: clients}, w
		}
		return w, w
	}
}

// checkTurns: a turn arrives a while after the one before it ended, and never after a rejection.
func checkTurns(t *rapid.T, w *talks, seen []metrics.Request) {
	arrived := map[string]des.Time{}
	for _, r := range seen {
		if _, twice := arrived[r.Set]; twice {
			t.Fatalf("turn %s came twice", r.Set)
		}
		arrived[r.Set] = r.Arrival
		if r.Rejected == "" && w.told[r.Set] != r.LastToken {
			t.Fatalf("turn %s ended at %v, the workload was told %v", r.Set, r.LastToken, w.told[r.Set])
		}
	}
	for session := range w.turns {
		for turn := range w.turns[session] {
			name, before := fmt.Sprint(session, turn), fmt.Sprint(session, turn-1)
			at, came := arrived[name]
			_, cameBefore := arrived[before]
			want := turn == 0 || cameBefore && !w.refused[before]
			if came != want {
				t.Fatalf("turn %s came: %v, want %v", name, came, want)
			}
			if came && turn > 0 && at != w.told[before]+thinks {
				t.Fatalf("turn %s arrives at %v, the last ended at %v", name, at, w.told[before])
			}
		}
	}
}

// Turns follow one another on a server and on a fleet whose replicas fail; a fleet of one replica
// is a server, and runs repeat.
func TestTurnsFollowOneAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, cfg, _ := drawFleet(t)
		start := talking(t, c)
		w, said := start()
		o := c.start(t, profile(t, c.gpu))
		if _, err := o.server.Drive(w, o, o.server.Check); err != nil {
			t.Fatalf("%v\n%v", err, c)
		}
		checkTurns(t, said, o.requests)

		var logs [2]log
		for i := range logs {
			w, said = start()
			f := newFleet(t, cfg)
			if _, err := sim.Look(f.Shared, w, &logs[i], f.Check); err != nil {
				t.Fatalf("%v\n%v", err, c)
			}
			checkTurns(t, said, logs[i].requests)
		}
		if !reflect.DeepEqual(logs[0], logs[1]) {
			t.Fatalf("law 9: two runs differ\n%v", c)
		}

		var one log
		w, _ = start()
		if _, err := newFleet(t, c.fleet(t, 1, "session")).Run(t.Context(), w, &one); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(one, o.log) {
			t.Fatalf("a fleet of one replica is no server\n%v", c)
		}
	})
}
