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
	s.Stopped = func() error { return context.Cause(ctx) }
	return Drive(ctx, s, w, rec)
}

// Runner is a server or a fleet.
type Runner interface {
	// Begin reads the first request from the workload, or the first of each client.
	Begin(Workload, Recorder) error
	// Advance handles one event. more is false if there was none.
	Advance() (more bool, err error)
	// End returns the metrics after the last event, Interrupted those of a run that ends earlier.
	End() (*metrics.Run, error)
	Interrupted() *metrics.Run
	// Check verifies the laws that hold between events.
	Check() error
}

// Drive runs to the end of the workload. It returns as Server.Run does.
func Drive(ctx context.Context, r Runner, w Workload, rec Recorder) (*metrics.Run, error) {
	if err := r.Begin(w, rec); err != nil {
		return nil, err
	}
	for {
		if ctx.Err() != nil { // check at each event, because a step may take long
			return r.Interrupted(), context.Cause(ctx)
		}
		if more, err := r.Advance(); err != nil {
			return r.Interrupted(), plain(ctx, err)
		} else if !more {
			return r.End()
		}
		if checkLaws {
			if err := r.Check(); err != nil {
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

// Begin implements Runner.
func (s *Server) Begin(w Workload, rec Recorder) error {
	s.Rec, s.Metrics = rec, metrics.New(s.About(1, s.memory.Tokens(s.memory.Total())))
	for range s.Feed.Begin(w) {
		if err := s.fetch(); err != nil {
			return err
		}
	}
	return nil
}

// About describes servers with KV memory for the given number of tokens.
func (c *Config) About(replicas int, tokens int64) metrics.About {
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

// Advance implements Runner.
func (s *Server) Advance() (more bool, err error) {
	before := s.Events.Now()
	ev, ok := s.Events.Next()
	if !ok {
		return false, nil
	}
	if gap := s.Events.Now() - before; gap > 0 && !s.busy && s.Idle != nil {
		if err := s.Idle(gap); err != nil {
			return false, err
		}
	}
	err = s.handle(ev)
	if err == nil && !s.Events.More() { // form a batch after all events of its start time
		err = s.proceed()
	}
	switch {
	case err == nil:
		return true, nil
	case s.Feed.Broken():
		return false, err // the workload's error contains its position
	default:
		return false, fmt.Errorf("at %v, step %d: %w", s.Events.Now(), s.steps, err)
	}
}

// Interrupted implements Runner.
func (s *Server) Interrupted() *metrics.Run {
	s.Metrics.End(s.Events.Now())
	return s.Metrics.Figures()
}

// End implements Runner.
func (s *Server) End() (*metrics.Run, error) {
	if n := s.sched.Waiting() + s.sched.Running(); n > 0 {
		return nil, fmt.Errorf("sim: %d requests can never be scheduled; the first waits since its "+
			"arrival", n)
	}
	s.memory.sampled(s.Metrics)
	return s.Metrics.Figures(), nil
}
