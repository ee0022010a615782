package sim_test

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// With places for two, two prompts of 4 tokens take 10 + 8 x 2 ms, and two tokens more 20 ms; only
// then does the third request run, alone, for 10 + 4 x 2 + 20 ms: two ran for 46 of 84 ms. With
// memory for four blocks of 4 tokens, a prompt of 12 takes three in 26 + 18 ms, and its next tokens
// the fourth in 20 ms. The second waits for three free ones meanwhile; then it takes all in its
// last 20 ms: 84 of 128 ms.
func TestNearLimitsByHand(t *testing.T) {
	short, long := sim.Arrival{Prompt: 4, Output: 3}, sim.Arrival{Prompt: 12, Output: 3}
	for name, c := range map[string]struct {
		blocks      int64
		requests    int
		arrivals    []sim.Arrival
		batch, room float64
	}{
		"places":      {100, 2, []sim.Arrival{short, short, short}, 46.0 / 84, 0},
		"room":        {4, 8, []sim.Arrival{long, long}, 0, 84.0 / 128},
		"plenty":      {100, 8, []sim.Arrival{short, long}, 0, 0},
		"both at all": {4, 1, []sim.Arrival{long, long}, 1, 84.0 / 128},
	} {
		s := byHand(c.blocks, c.arrivals...)
		s.spec.MaxRequests = c.requests
		_, o, _ := s.lives(t, nil)
		sum := o.metrics.Summary()
		if math.Abs(sum.BatchFull-c.batch) > 1e-9 || math.Abs(sum.KVFull-c.room) > 1e-9 {
			t.Errorf("%s: %v of the time at max_requests and %v at full KV, want %v and %v", name,
				sum.BatchFull, sum.KVFull, c.batch, c.room)
		}
	}
}
