package sim_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// loop is a closed loop of given requests without think times.
type loop struct {
	list
	clients int
	ended   des.Time
}

func (l *loop) Concurrency() int  { return l.clients }
func (l *loop) Ended(at des.Time) { l.ended = at }

func (l *loop) Next() (sim.Arrival, bool, error) {
	a, ok, err := l.list.Next()
	a.At = l.ended
	return a, ok, err
}

// left is when a request's client has its last token, or its rejection.
func (c *scenario) left(r *metrics.Request) des.Time {
	if r.Rejected != "" {
		return r.Arrival + c.engine.Request + c.engine.Reply
	}
	return r.LastToken
}

// closed serves the scenario's requests in a closed loop; laws are checked after every event.
func (c *scenario) closed(t *rapid.T, clients int) *outcome {
	o := c.start(t, profile(t, c.gpu))
	var err error
	o.metrics, err = o.server.Drive(&loop{list: list{arrivals: c.arrivals}, clients: clients}, o,
		o.server.Check)
	if err != nil {
		t.Fatalf("%v\n%v", err, c)
	}
	return o
}

// In a closed loop each client has one request in flight, from the start until none is left:
// every further request arrives when an earlier one ends, in the order of the ends.
func TestClosedLoopKeepsItsConcurrency(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		for range rapid.IntRange(0, 2).Draw(t, "again") {
			c.arrivals = append(c.arrivals, c.arrivals...)
		}
		clients := rapid.IntRange(1, 6).Draw(t, "clients")
		o := c.closed(t, clients)
		if left := o.server.Left(); left != (sim.Holdings{}) || len(o.requests) != len(c.arrivals) {
			t.Fatalf("%d of %d requests ended, left behind: %+v\n%v", len(o.requests),
				len(c.arrivals), left, c)
		}
		var ends, arrivals []des.Time
		for i := range o.requests {
			ends, arrivals = append(ends, c.left(&o.requests[i])), append(arrivals, o.requests[i].Arrival)
		}
		slices.Sort(ends)
		slices.Sort(arrivals)
		for i, at := range arrivals {
			want := des.Time(0)
			if i >= clients {
				want = ends[i-clients]
			}
			if at != want {
				t.Fatalf("request %d of %d clients arrives at %v, want %v\n%v", i+1, clients, at, want, c)
			}
		}
	})
}

// Little's law: concurrency = throughput x mean time end to end. What is missing is missing
// after the first client found no request left.
func TestClosedLoopLittlesLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		for len(c.arrivals) < 60 {
			c.arrivals = append(c.arrivals, c.arrivals...)
		}
		clients := rapid.IntRange(1, 6).Draw(t, "clients")
		o := c.closed(t, clients)
		slices.SortFunc(o.requests, func(a, b metrics.Request) int {
			return cmp.Compare(c.left(&a), c.left(&b))
		})
		n := len(o.requests)
		full, end := c.left(&o.requests[n-clients]).Seconds(), c.left(&o.requests[n-1]).Seconds()
		if end == 0 {
			t.Skip("all rejected in no time")
		}
		var inSystem float64
		for i := range o.requests {
			inSystem += (c.left(&o.requests[i]) - o.requests[i].Arrival).Seconds()
		}
		throughput, e2e := float64(n)/end, inSystem/float64(n)
		if got, slack := throughput*e2e,
			float64(clients)*(end-full)/end; math.Abs(got-float64(clients)) > slack+1e-9 {
			t.Fatalf("throughput %g/s x time end to end %g s = %g, want %d within %g\n%v", throughput, e2e,
				got, clients, slack, c)
		}
	})
}

// Law 9 in a closed loop: the same run, to the nanosecond.
func TestLaw9ClosedLoopsRepeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		clients := rapid.IntRange(1, 6).Draw(t, "clients")
		a, b := c.closed(t, clients), c.closed(t, clients)
		if !slices.Equal(a.requests, b.requests) || !slices.Equal(a.gaps, b.gaps) {
			t.Fatalf("law 9: two runs differ\n%v", c)
		}
	})
}
