package sim_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/fleet"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// fleet returns a fleet of the scenario's servers.
func (c *scenario) fleet(t fatal, replicas int, router string) fleet.Config {
	gpu := profile(t, c.gpu)
	if c.spec.PrefixCache.Eviction == memory.Belady {
		c.spec.PrefixCache.Eviction = memory.LRU
	}
	return fleet.Config{
		Config: c.config(t, nil), Replicas: replicas, Router: router,
		NewDevice: func() (sim.Device, error) { return c.modelled(t, gpu), nil },
	}
}

// workload returns the scenario's requests, of the given number of clients, or with 0 at their own
// times.
func (c *scenario) workload(clients int) sim.Workload {
	switch {
	case c.workOf != nil:
		return c.workOf()
	case clients == 0:
		return &list{arrivals: c.arrivals}
	}
	return &loop{list: list{arrivals: c.arrivals}, clients: clients}
}

// leftOf is what servers of a fleet have left.
func leftOf(f *fleet.Fleet) (all sim.Holdings) {
	for _, s := range f.Up() {
		h := s.Left()
		all.Requests += h.Requests + int64(s.Coming())
		all.Granted += h.Granted
		all.Reserved += h.Reserved
		all.Held += h.Held
		all.Saves += h.Saves
	}
	return all
}

// recount compares the loads that a fleet's router sees with a count of all requests.
func recount(f *fleet.Fleet) func() error {
	return func() error {
		for _, s := range f.Up() {
			if err := s.Recount(); err != nil {
				return err
			}
		}
		return nil
	}
}

func newFleet(t fatal, cfg fleet.Config) *fleet.Fleet {
	f, err := fleet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// drawFleet draws a fleet in which replicas fail and drain while requests run; replica 0 takes
// requests at all times that it is up.
func drawFleet(t *rapid.T) (*scenario, fleet.Config, int) {
	c := drawScenario(t)
	n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	for range n("again", 0, 2) {
		last := c.arrivals[len(c.arrivals)-1].At
		for _, a := range slices.Clone(c.arrivals) {
			a.At += last
			c.arrivals = append(c.arrivals, a)
		}
	}
	for i := range c.arrivals {
		if n("in session", 0, 1) == 1 {
			c.arrivals[i].Session = fmt.Sprint(n("session", 0, 4))
		}
	}
	cfg := c.fleet(t, n("replicas", 1, 5), rapid.SampledFrom(fleet.RouterNames()).Draw(t, "router"))
	time := func(name string, most int) des.Time {
		return des.Time(n(name, 0, most)) * 100 * des.Microsecond
	}
	for range n("outages", 0, 4) {
		cfg.Outages = append(cfg.Outages, fleet.Outage{Replica: n("fails", 0, cfg.Replicas-1),
			At: time("fails at", 2000), For: 1 + time("down for", 2000)})
	}
	for range n("drains", 0, 2) {
		if cfg.Replicas > 1 {
			cfg.Drains = append(cfg.Drains, fleet.Drain{Replica: n("drains", 1, cfg.Replicas-1),
				At: time("drains at", 2000)})
		}
	}
	return c, cfg, n("clients", 0, 4)
}

// A fleet of one replica is a server: the same requests, gaps, steps and figures.
func TestFleetOfOneIsAServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		clients := rapid.IntRange(0, 4).Draw(t, "clients")
		if rapid.Bool().Draw(t, "cut off") {
			c.cutoff = metrics.Cutoff{Warmup: metrics.CutShare, WarmupShare: 0.2, Drain: metrics.CutShare,
				DrainShare: 0.2}
		}
		cfg := c.fleet(t, 1, rapid.SampledFrom(fleet.RouterNames()).Draw(t, "router"))
		var one, many log
		want, err := c.server(t, c.modelled(t, profile(t, c.gpu))).Run(t.Context(),
			c.workload(clients), &one)
		if err != nil {
			t.Fatal(err)
		}
		f := newFleet(t, cfg)
		got, err := f.Run(t.Context(), c.workload(clients), &many)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(one, many) || !reflect.DeepEqual(want.Summary(), got.Summary()) {
			t.Fatalf("fleet %+v\nserver %+v\n%v", got.Summary(), want.Summary(), c)
		}
	})
}

// Law 4 over a fleet whose replicas fail and drain: every request ends once, at a replica that was
// there for it, with all tokens that it asked for, and its prompt and hit are counted once, however
// often its prefill begins; laws of every server hold after every event.
func TestLaw4FleetsLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, cfg, clients := drawFleet(t)
		f := newFleet(t, cfg)
		var seen log
		m, err := sim.Look(f.Shared, c.workload(clients), &seen, f.Check)
		if err != nil {
			t.Fatalf("%v\n%+v %+v\n%v", err, cfg.Outages, cfg.Drains, c)
		}
		if left := leftOf(f); left != (sim.Holdings{}) {
			t.Fatalf("left behind: %+v\n%v", left, c)
		}
		ended := map[int]bool{}
		tokens, done, retried := 0, 0, 0
		var prompts, hits int64
		for _, r := range seen.requests {
			if ended[r.ID] {
				t.Fatalf("law 4: request %d ended twice\n%v", r.ID, c)
			}
			ended[r.ID] = true
			retried += r.Retries
			if r.Rejected == "" {
				done++
				tokens += r.Output
				prompts += int64(r.Prompt)
				hits += int64(r.Hit)
			}
			for _, d := range cfg.Drains {
				if r.Replica == d.Replica && r.Retries == 0 && r.Arrival > d.At {
					t.Fatalf("request %d arrived at %v, replica %d drains since %v", r.ID, r.Arrival,
						d.Replica, d.At)
				}
			}
			for _, o := range cfg.Outages {
				if r.Replica == o.Replica && r.Rejected == "" && r.LastToken-c.engine.Reply > o.At &&
					r.LastToken-c.engine.Reply < o.At+o.For {
					t.Fatalf("request %d ends on replica %d, which is down: %+v", r.ID, r.Replica, o)
				}
			}
		}
		sum := m.Summary()
		if len(ended) != len(c.arrivals) || sum.Completed != done ||
			sum.Rejected != len(c.arrivals)-done || sum.Requests != len(c.arrivals) {
			t.Fatalf("law 4: %d arrived, %d ended; %+v\n%v", len(c.arrivals), len(ended), sum, c)
		}
		if len(seen.gaps)+done != tokens || retried != sum.Retried {
			t.Fatalf("law 4: %d tokens emitted of %d, %d retries of %d\n%v", len(seen.gaps)+done, tokens,
				sum.Retried, retried, c)
		}
		c.tiersAddUp(t, seen.requests, sum)
		if p := sum.PrefixCache; p != nil && (p.PromptTokens != prompts || p.HitTokens != hits) {
			t.Fatalf("law 4: first prefills of %d tokens, %d hit; prompts have %d, %d hit\n%v",
				p.PromptTokens, p.HitTokens, prompts, hits, c)
		}
	})
}

// Law 9: fleets repeat, to the nanosecond.
func TestLaw9FleetsRepeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, cfg, clients := drawFleet(t)
		var logs [2]log
		var sums [2]metrics.Summary
		for i := range logs {
			m, err := newFleet(t, cfg).Run(t.Context(), c.workload(clients), &logs[i])
			if err != nil {
				t.Fatal(err)
			}
			sums[i] = m.Summary()
		}
		if !reflect.DeepEqual(logs[0], logs[1]) || !reflect.DeepEqual(sums[0], sums[1]) {
			t.Fatalf("law 9: two runs differ\n%v", c)
		}
	})
}

// A window over the whole run has the figures of the run, of every replica.
func TestWindowOfAFleet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, cfg, clients := drawFleet(t)
		whole, err := newFleet(t, cfg).Run(t.Context(), c.workload(clients), &log{})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Cutoff = metrics.Cutoff{Warmup: metrics.CutShare, Drain: metrics.CutShare}
		part, err := newFleet(t, cfg).Run(t.Context(), c.workload(clients), &log{})
		if err != nil {
			t.Fatal(err)
		}
		a, b := whole.Summary(), part.Summary()
		if a.Retried != b.Retried || !reflect.DeepEqual(a.ReplicaLoads, b.ReplicaLoads) ||
			a.TTFT != b.TTFT || a.Completed != b.Completed {
			t.Fatalf("whole %+v\nwindow %+v\n%v", a, b, c)
		}
		if p, q := a.PrefixCache, b.PrefixCache; p != nil &&
			(p.PromptTokens != q.PromptTokens || p.HitTokens != q.HitTokens || p.Preempted != q.Preempted) {
			t.Fatalf("whole %+v\nwindow %+v\n%v", p, q, c)
		}
	})
}

// Law 5: the steps of a replica follow one another, also over a failure.
func TestLaw5StepsOfReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, cfg, clients := drawFleet(t)
		var seen log
		if _, err := newFleet(t, cfg).Run(t.Context(), c.workload(clients), &seen); err != nil {
			t.Fatal(err)
		}
		next, end := make([]int64, cfg.Replicas), make([]des.Time, cfg.Replicas)
		for _, s := range seen.steps {
			if s.Index != next[s.Replica] || s.Start < end[s.Replica] {
				t.Fatalf("law 5: step %d of replica %d begins at %v, the one before ended at %v\n%v", s.Index,
					s.Replica, s.Start, end[s.Replica], c)
			}
			next[s.Replica], end[s.Replica] = s.Index+1, s.Start+s.Timing.Elapsed
		}
	})
}

// A replica that fails has its requests served by the other, from the tokens that they had.
func TestFailedReplicaByHand(t *testing.T) {
	c := skewed()
	c.arrivals = []sim.Arrival{{Prompt: 8, Output: 400 - 8}, {Prompt: 8, Output: 400 - 8}}
	cfg := c.fleet(t, 2, "round-robin")
	var before log
	if _, err := newFleet(t, cfg).Run(t.Context(), c.workload(0), &before); err != nil {
		t.Fatal(err)
	}
	first, last := before.requests[1].FirstToken, before.requests[1].LastToken
	at := first + (last-first)/2
	cfg.Outages = []fleet.Outage{{Replica: 1, At: at, For: des.Second}}
	var after log
	m, err := newFleet(t, cfg).Run(t.Context(), c.workload(0), &after)
	if err != nil {
		t.Fatal(err)
	}
	r := after.requests[1]
	if r.ID != 2 || r.Replica != 0 || r.Retries != 1 || r.FirstToken != first || r.LastToken <= last {
		t.Errorf("%+v, without a failure %+v", r, before.requests[1])
	}
	var prefilled int64
	for _, s := range after.steps {
		if s.Replica == 0 && s.Start >= at {
			prefilled += s.PrefillTokenLayers
		}
	}
	var emitted int64
	for _, s := range after.steps {
		if s.Replica == 1 {
			emitted += int64(s.Tokens)
		}
	}
	if want := (8 + emitted) * int64(c.model.Layers); prefilled != want || emitted < 100 {
		t.Errorf("%d token-layers prefilled anew, want %d: the prompt and %d tokens", prefilled,
			want, emitted)
	}
	if sum := m.Summary(); sum.Retried != 1 || sum.Replicas != 2 || len(sum.ReplicaLoads) != 2 ||
		sum.ReplicaLoads[0].Requests != 2 {
		t.Errorf("%+v", sum)
	}
}

// A replica fails in the first step of a prefill: its prompt and hit are counted once, and what it
// prefills anew, with nothing cached, is no first prefill. A window over all has the same.
func TestFailureInAPrefillsFirstStepByHand(t *testing.T) {
	shared := holding(0, text(1, 64))
	c := cachedByHand(100, sim.Arrival{Prompt: 64, Output: 2, Content: shared},
		sim.Arrival{At: des.Second, Prompt: 64, Output: 2, Content: shared})
	for _, x := range []struct {
		outages []fleet.Outage
		again   int64
	}{{}, {[]fleet.Outage{{At: des.Second + 100*des.Microsecond, For: ms}}, 64}} {
		for _, cutoff := range []metrics.Cutoff{{}, {Warmup: metrics.CutShare, Drain: metrics.CutShare}} {
			c.cutoff = cutoff
			cfg := c.fleet(t, 1, "round-robin")
			cfg.Outages = x.outages
			m, err := newFleet(t, cfg).Run(t.Context(), c.workload(0), &log{})
			if err != nil {
				t.Fatal(err)
			}
			sum := m.Summary()
			expect(t, "retried", sum.Retried, len(x.outages))
			stats := sum.PrefixCache
			expect(t, "prompts and hits", [2]int64{stats.PromptTokens, stats.HitTokens},
				[2]int64{128, 60})
			expect(t, "again", stats.Preempted, metrics.PrefixAgain{PromptTokens: x.again})
		}
	}
}

// While no replica is up, requests wait at the router; without any replica to come they are an
// error.
func TestRequestsWaitAtTheRouter(t *testing.T) {
	c := skewed()
	c.arrivals = []sim.Arrival{{Prompt: 8, Output: 4}, {At: des.Second, Prompt: 8, Output: 4}}
	cfg := c.fleet(t, 1, "session")
	cfg.Outages = []fleet.Outage{{At: des.Second / 2, For: des.Second}}
	var seen log
	if _, err := newFleet(t, cfg).Run(t.Context(), c.workload(0), &seen); err != nil {
		t.Fatal(err)
	}
	if r := seen.requests[1]; r.Scheduled != des.Second*3/2 || r.Retries != 0 {
		t.Errorf("scheduled at %v, want 1.5 s: %+v", r.Scheduled, r)
	}
	cfg.Outages, cfg.Drains = nil, []fleet.Drain{{At: des.Second / 2}}
	if _, err := newFleet(t, cfg).Run(t.Context(), c.workload(0), &log{}); err == nil {
		t.Error("a request that no replica takes is no error")
	}
}

// finite calls last when its requests have all come.
type finite struct {
	list
	last func()
}

func (a *finite) Next() (sim.Arrival, bool, error) {
	next, ok, err := a.list.Next()
	if !ok {
		a.last()
	}
	return next, ok, err
}

// Requests that come, or lose their server, while every replica is down are counted once, with the
// longest wait, in a window of figures and in a run that is ended meanwhile too; none is where one
// is up.
func TestNoReplicaUp(t *testing.T) {
	c := skewed()
	c.arrivals = []sim.Arrival{{Prompt: 8, Output: 400 - 8}, {Prompt: 8, Output: 400 - 8},
		{At: 30 * des.Second, Prompt: 8, Output: 4}, {At: 36 * des.Second, Prompt: 8, Output: 4}}
	down := func(replica int) []fleet.Outage {
		return []fleet.Outage{{Replica: replica, At: 1, For: 20 * des.Second},
			{Replica: replica, At: 25 * des.Second, For: 15 * des.Second}}
	}
	all := slices.Concat(down(0), down(1))
	for name, x := range map[string]struct {
		outages []fleet.Outage
		cut     metrics.Cutoff
		ends    bool
		n       int
		want    string
	}{
		"one up":  {outages: down(1)},
		"none up": {outages: all, n: 4, want: "4 of the requests waited for one, up to 20 s"},
		"a window": {all, metrics.Cutoff{Warmup: metrics.CutShare, WarmupShare: 0.4}, false, 4,
			"4 of the"},
		"ended": {all[1:2:2], metrics.Cutoff{}, true, 2,
			"2 of the requests waited for one, up to 6 s"},
	} {
		cfg := c.fleet(t, 2, "round-robin")
		cfg.Outages, cfg.Cutoff = x.outages, x.cut
		if x.ends {
			cfg.Outages = append(x.outages,
				fleet.Outage{Replica: 1, At: 25 * des.Second, For: des.Second * 99})
		}
		ctx, cancel := context.WithCancel(t.Context())
		w := &finite{list{arrivals: c.arrivals}, func() {
			if x.ends {
				cancel()
			}
		}}
		m, err := newFleet(t, cfg).Run(ctx, w, &log{})
		if cancel(); (err != nil) != x.ends {
			t.Fatal(err)
		}
		s := m.Summary()
		i := slices.IndexFunc(s.Warnings,
			func(w warn.Warning) bool { return w.Kind == warn.ReplicasDown })
		if s.Stranded != x.n || (i >= 0) != (x.n > 0) || i >= 0 && !strings.HasPrefix(s.Warnings[i].Text,
			"no replica was up for some time: "+x.want) {
			t.Errorf("%s: %d stranded, %q", name, s.Stranded, s.Warnings)
		}
	}
}
