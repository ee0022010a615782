package traces

import (
	"fmt"
	"math/rand/v2"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// clients are the clients of a closed loop. Each client thinks, sends a request, waits for its
// answer, and repeats. Think times are exponential, or 0 for a mean of 0. Requests have no client
// identity, because all clients are alike.
type clients struct {
	n     int
	think float64 // mean, seconds
	rng   *rand.Rand
	ended des.Time // end of the request before the next
}

func newClients(s Spec, seed uint64) *clients {
	return &clients{n: s.Concurrency, think: s.ThinkS, rng: des.Rand(seed, "traces.think")}
}

func (c *clients) next() (des.Time, error) {
	return after(c.ended, c.think*c.rng.ExpFloat64(), c.think)
}

// after returns at + seconds. mean is workload.think_s, for the error.
func after(at des.Time, seconds, mean float64) (des.Time, error) {
	if seconds > (rows.Latest - at).Seconds() {
		return 0, fmt.Errorf("arrival after 285 years: workload.think_s = %g is too long for "+
			"workload.requests", mean)
	}
	return at + des.FromSeconds(seconds), nil
}

// Concurrency implements sim.ClosedLoop. It returns the clients of a closed loop, 0 for other
// arrivals.
func (s *Stream) Concurrency() int {
	if s.clients == nil {
		return 0
	}
	return s.clients.n
}

// Ended implements sim.ClosedLoop.
func (s *Stream) Ended(at des.Time) { s.clients.ended = at }
