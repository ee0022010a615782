package sim

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// endless is a closed loop without an end.
type endless struct{ ended des.Time }

func (e *endless) Concurrency() int  { return 4 }
func (e *endless) Ended(at des.Time) { e.ended = at }
func (e *endless) Next() (Arrival, bool, error) {
	return Arrival{At: e.ended, Prompt: 1, Output: 1}, true, nil
}

// A request that ends and the one that follows it allocate nothing of the loop's own.
func TestClosedLoopAllocatesNothing(t *testing.T) {
	s := &Server{Config: Config{Engine: Engine{Request: des.Millisecond}}, Shared: NewShared()}
	s.servers, s.Metrics = []*Server{s}, metrics.New(metrics.About{Replicas: 1})
	s.Geometry = kv.Geometry{Layers: 1, KVHeads: 1, BlockTokens: 16, BlockBytes: 1}
	s.HBMBytes = 64
	if _, err := s.newResidency(); err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(&endless{}, nil); err != nil {
		t.Fatal(err)
	}
	next := func() {
		for { // to the front end, then to the scheduler
			ev, ok := s.events.Next()
			if !ok {
				t.Fatal("no request is coming")
			}
			if ev.kind == arrive {
				s.front.coming.Take(ev.n)
				break
			}
			if err := s.Shared.handle(ev); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.ended(Arrival{}, s.Now(), false); err != nil {
			t.Fatal(err)
		}
	}
	next()
	if n := testing.AllocsPerRun(100, next); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
	if n := len(s.front.coming.All()); n != 4 {
		t.Errorf("%d requests are held for 4 clients", n)
	}
}
