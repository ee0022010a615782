package sim_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/fleet"
)

// fleetOf is a fleet of the scenario with many replicas at work for ever.
func busyFleet(t testing.TB) *fleet.Fleet {
	c := skewed()
	c.arrivals = nil
	for range 64 {
		c.arrivals = append(c.arrivals, sim.Arrival{Prompt: 8, Output: 390})
	}
	f := newFleet(t, c.fleet(t, 16, "least-tokens"))
	if err := f.Begin(c.workload(0), quiet{}); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := f.Advance(); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// A step of a fleet allocates nothing in steady state.
func TestFleetAllocatesNothingInSteadyState(t *testing.T) {
	f := busyFleet(t)
	if n := testing.AllocsPerRun(1000, func() {
		if more, err := f.Advance(); err != nil || !more {
			t.Fatal(more, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}
