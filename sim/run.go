package sim

import (
	"context"
	"errors"
	"fmt"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Run serves the workload to its end and returns the run's metrics. If ctx ends first it returns
// the cause of ctx. With an error it returns the metrics of the part that ran.
func (s *Server) Run(ctx context.Context, w Workload, rec Recorder) (*metrics.Run, error) {
	s.stopped = func() error { return context.Cause(ctx) }
	return drive(ctx, s, w, rec)
}

// runner is a server or a fleet.
type runner interface {
	begin(Workload, Recorder) error
	advance() (more bool, err error) // handles one event
	end() (*metrics.Run, error)
	interrupted() *metrics.Run
	check() error
}

// drive runs to the end of the workload.
func drive(ctx context.Context, r runner, w Workload, rec Recorder) (*metrics.Run, error) {
	if err := r.begin(w, rec); err != nil {
		return nil, err
	}
	for {
		if ctx.Err() != nil { // check at each event, because a step may take long
			return r.interrupted(), context.Cause(ctx)
		}
		if more, err := r.advance(); err != nil {
			return r.interrupted(), plain(ctx, err)
		} else if !more {
			return r.end()
		}
		if checkLaws {
			if err := r.check(); err != nil {
				panic(fmt.Sprintf("sim: %v", err))
			}
		}
	}
}

// plain returns the cause of ctx if err wraps it, without the step in which it was noticed.
func plain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		return cause
	}
	return err
}

// begin reads the first request from the workload, or the first of each client.
func (s *Server) begin(w Workload, rec Recorder) error {
	s.rec, s.metrics = rec, metrics.New(s.about(1, s.memory.Tokens(s.memory.Total())))
	for range s.feed.begin(w) {
		if err := s.fetch(); err != nil {
			return err
		}
	}
	return nil
}

// about describes servers with KV memory for the given number of tokens.
func (c *Config) about(replicas int, tokens int64) metrics.About {
	about := metrics.About{Replicas: replicas, Layers: c.Model.Layers, Tokens: tokens,
		BlockBytes: c.Geometry.BlockBytes, Offload: c.Spec.Offload.On,
		Capacity: metrics.Capacity{HBM: c.CardBytes, Fixed: c.FixedBytes, KV: c.HBMBytes,
			DRAM: int64(c.Spec.DRAMGiB * (1 << 30))},
		Prefixes: c.Spec.CachesPrefixes(), Tiers: c.Spec.PrefixTiers(),
		DRAM: c.Spec.PrefixTiers() && c.Spec.PrefixCache.DRAMGiB > 0,
		Good: c.Good, LongWait: c.LongWait, Cutoff: c.Cutoff}
	if c.Spec.Progressive() {
		about.Progressive = c.Model.Layers - c.Spec.Selection.DenseLayers
	}
	return about
}

func (s *Server) advance() (more bool, err error) {
	before := s.events.Now()
	ev, ok := s.events.Next()
	if !ok {
		return false, nil
	}
	if gap := s.events.Now() - before; gap > 0 && !s.busy && s.Idle != nil {
		if err := s.Idle(gap); err != nil {
			return false, err
		}
	}
	err = s.handle(ev)
	if err == nil && !s.events.More() { // form a batch after all events of its start time
		err = s.proceed()
	}
	switch {
	case err == nil:
		return true, nil
	case s.feed.broken:
		return false, err // the workload's error contains its position
	default:
		return false, fmt.Errorf("at %v, step %d: %w", s.events.Now(), s.steps, err)
	}
}

// interrupted returns the metrics of a run that ends here.
func (s *Server) interrupted() *metrics.Run {
	s.metrics.End(s.events.Now())
	return s.metrics.Figures()
}

// end returns the metrics after the last event.
func (s *Server) end() (*metrics.Run, error) {
	if n := s.sched.Waiting() + s.sched.Running(); n > 0 {
		return nil, fmt.Errorf("sim: %d requests can never be scheduled; the first waits since its "+
			"arrival", n)
	}
	s.memory.sampled(s.metrics)
	return s.metrics.Figures(), nil
}
