package sim_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
)

// stopping ends a run's context in its first step.
type stopping struct {
	log
	stop context.CancelFunc
}

func (s *stopping) Step(r *sim.StepRecord) error {
	s.stop()
	return s.log.Step(r)
}

// An interrupt is obeyed at the next event, of a server and of a fleet: no further step is
// recorded, however many there would be.
func TestInterruptEndsAtTheNextEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		for _, fleet := range []bool{false, true} {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			rec := &stopping{stop: cancel}
			serve := c.server(t, c.modelled(t, profile(t, c.gpu))).Run
			if fleet {
				serve = newFleet(t, c.fleet(t, 1, sim.RoundRobin)).Run
			}
			_, err := serve(ctx, c.workload(0), rec)
			if len(rec.steps) > 1 || len(rec.steps) == 1 && err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("%d steps after an interrupt in the first (fleet %v): %v\n%v",
					len(rec.steps), fleet, err, c)
			}
		}
	})
}
