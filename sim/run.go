package sim

import (
	"context"
	"errors"
	"fmt"
)

// Run serves the workload to its end and returns the run's metrics. If ctx ends first it returns
// the cause of ctx. With an error it returns the metrics of the part that ran.
func (s *Server) Run(ctx context.Context, w Workload, rec Recorder) (*Metrics, error) {
	s.stopped = func() error { return context.Cause(ctx) }
	return drive(ctx, s, w, rec)
}

// runner is a server or a fleet.
type runner interface {
	begin(Workload, Recorder) error
	advance() (more bool, err error) // handles one event
	end() (*Metrics, error)
	interrupted() *Metrics
	check() error
}

// drive runs to the end of the workload.
func drive(ctx context.Context, r runner, w Workload, rec Recorder) (*Metrics, error) {
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
	s.rec, s.metrics = rec, s.newMetrics(1)
	s.metrics.room = s.memory.Tokens(s.memory.Total())
	for range s.feed.begin(w) {
		if err := s.fetch(); err != nil {
			return err
		}
	}
	return nil
}

// newMetrics returns empty metrics for the given number of replicas.
func (c *Config) newMetrics(replicas int) *Metrics {
	m := NewMetrics()
	m.replicas = make([]replicaUse, replicas)
	m.offload, m.blockBytes = c.Spec.Offload.On, c.Geometry.BlockBytes
	m.prefixes, m.tiers = c.Spec.CachesPrefixes(), c.Spec.PrefixTiers()
	m.dram = m.tiers && c.Spec.PrefixCache.DRAMGiB > 0
	m.good, m.layers, m.longWait = c.Good, c.Model.Layers, c.LongWait
	m.capacity = Capacity{HBM: c.CardBytes, Fixed: c.FixedBytes, KV: c.HBMBytes,
		DRAM: int64(c.Spec.DRAMGiB * (1 << 30))}
	if c.Cutoff.On() {
		m.journal = &journal{}
	}
	if c.Spec.Progressive() {
		m.progressive = c.Model.Layers - c.Spec.Selection.DenseLayers
	}
	return m
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
func (s *Server) interrupted() *Metrics {
	s.metrics.end = max(s.metrics.end, s.events.Now())
	return s.metrics.figures(&s.Cutoff)
}

// end returns the metrics after the last event.
func (s *Server) end() (*Metrics, error) {
	if n := s.sched.Waiting() + s.sched.Running(); n > 0 {
		return nil, fmt.Errorf("sim: %d requests can never be scheduled; the first waits since its "+
			"arrival", n)
	}
	s.memory.sampled(s.metrics)
	return s.metrics.figures(&s.Cutoff), nil
}
