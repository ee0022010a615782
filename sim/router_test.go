package sim_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/fleet"
)

// What a router sees is what a recount of all requests finds, whenever it is asked.
func TestRoutersSeeTheLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, cfg, clients := drawFleet(t)
		f := newFleet(t, cfg)
		if _, err := sim.Look(f.Shared, c.workload(clients), &log{}, recount(f)); err != nil {
			t.Fatalf("%v\n%v", err, c)
		}
	})
}

// Routers pick what a naive reading of their rule picks.
func TestRoutersPick(t *testing.T) {
	pick := map[string]func(*fleet.View, *sim.Arrival) int{}
	for _, r := range fleet.Routers() {
		pick[r.Name] = r.Pick
	}
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(rapid.IntRange(0, 20), 1, 8, rapid.ID).Draw(t, "replicas")
		slices.Sort(all)
		v := &fleet.View{Last: rapid.IntRange(-1, 20).Draw(t, "last")}
		for _, r := range all {
			v.Candidates = append(v.Candidates,
				fleet.Candidate{Replica: r, Load: sim.Load{Tokens: rapid.Int64Range(0, 5).Draw(t, "tokens"),
					WorkingSet: rapid.Int64Range(0, 5).Draw(t, "set")},
					Sent: rapid.Int64Range(0, 5).Draw(t, "sent")})
		}
		a := &sim.Arrival{Session: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "session")}
		next := v.Last + 1 // round robin: the next number that is there
		for !slices.Contains(all, next%21) {
			next++
		}
		if got := v.Candidates[pick["round-robin"](v, a)].Replica; got != next%21 {
			t.Fatalf("round-robin after %d of %v: %d, want %d", v.Last, all, got, next%21)
		}
		for name, of := range map[string]func(fleet.Candidate) int64{
			"least-tokens":      func(c fleet.Candidate) int64 { return c.Tokens },
			"least-working-set": func(c fleet.Candidate) int64 { return c.WorkingSet },
			"prefix":            func(c fleet.Candidate) int64 { return c.Tokens - c.Sent },
		} {
			want := slices.MinFunc(v.Candidates, func(x, y fleet.Candidate) int {
				return int(of(x) - of(y))
			})
			if got := v.Candidates[pick[name](v, a)]; got != want {
				t.Fatalf("%s of %v: %v, want %v", name, v.Candidates, got, want)
			}
		}
		at := v.Candidates[pick["session"](v, a)].Replica
		if a.Session == "" {
			if at != next%21 {
				t.Fatalf("without a session: %d, round-robin says %d", at, next%21)
			}
			return
		}
		// A session stays where it is when any other replica goes.
		gone := rapid.SampledFrom(all).Draw(t, "gone")
		if gone == at {
			return
		}
		v.Candidates = slices.DeleteFunc(v.Candidates, func(c fleet.Candidate) bool {
			return c.Replica == gone
		})
		v.Last = gone
		if now := v.Candidates[pick["session"](v, a)].Replica; now != at {
			t.Fatalf("session %q moves from %d to %d when %d goes", a.Session, at, now, gone)
		}
	})
}

// skewed is a load of which every third request is forty times as long as the others: with three
// replicas in turn, one has all of the long ones.
func skewed() *scenario {
	c := byHand(4000)
	c.model, c.hbm = tiny(4, 4), 1<<40
	c.spec.MaxTokens = 64
	for i := range 600 {
		a := sim.Arrival{At: des.Time(i) * 2 * des.Millisecond, Prompt: 8, Output: 4}
		if i%3 == 0 {
			a.Prompt, a.Output = 320, 40
		}
		c.arrivals = append(c.arrivals, a)
	}
	return c
}

// Under a skewed load the replica with the fewest tokens outstanding answers sooner than the next
// in turn.
func TestLeastTokensBeatsRoundRobin(t *testing.T) {
	c := skewed()
	p99 := map[string]float64{}
	for _, router := range []string{"round-robin", "least-tokens", "least-working-set"} {
		m, err := newFleet(t, c.fleet(t, 3, router)).Run(t.Context(), c.workload(0), &log{})
		if err != nil {
			t.Fatal(err)
		}
		p99[router] = m.Summary().TTFT.P99
	}
	t.Log(p99)
	for _, router := range []string{"least-tokens", "least-working-set"} {
		if p99[router] > 0.8*p99["round-robin"] {
			t.Errorf("P99 of TTFT: %s %g s, round-robin %g s", router, p99[router], p99["round-robin"])
		}
	}
}
