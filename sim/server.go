package sim

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// Server runs one serving system on one device in virtual time.
type Server struct {
	Config
	*Shared
	place    Place
	sched    *sched.Scheduler
	memory   residency
	prefixes *prefixes
	future   *memory.Future // upcoming requests for Belady; nil otherwise
	sel      *selection
	path     path
	repeater Repeater // nil: the device prices each layer
	requests map[*sched.Request]*request
	free     unused

	arrivals    int // of a server that is alone
	busy        bool
	steps       int64
	step        stepState
	coming      des.Slots[arriving]
	arrivedLate []*sched.Request // arrived after the next step was planned
	untried     bool             // waiting requests were not considered for the batch
	leaps
}

// arriving is a request on its way to the scheduler.
type arriving struct {
	Ticket
	pulls bool // its arrival fetches the next request; not in a closed loop
}

// NewServer returns a server with no requests.
func NewServer(cfg Config) (*Server, error) {
	spec := &cfg.Spec
	s := &Server{Config: cfg, Shared: NewShared(), requests: map[*sched.Request]*request{}}
	var err error
	if s.sel, err = newSelection(&s.Config, func() error { return s.Stopped() }); err != nil {
		return nil, err
	}
	if err := s.checkAddressed(s.sel.sample.Rate); err != nil {
		return nil, err
	}
	if err := s.checkSpeculation(); err != nil {
		return nil, err
	}
	if err := s.checkPrefixes(); err != nil {
		return nil, err
	}
	limit, err := s.newResidency()
	if err != nil {
		return nil, err
	}
	inject := spec.Prefill.MaxInject
	if inject == 0 {
		inject = int64(spec.Prefill.ChunkTokens) * int64(cfg.Model.Layers)
	}
	s.sched, err = sched.New(sched.Config{
		Base: spec.Scheduler, MaxRequests: spec.MaxRequests, MaxTokens: spec.MaxTokens,
		Planner: sched.Planner{Mode: spec.Prefill.Split, Layers: cfg.Model.Layers, MaxInject: inject,
			Chunk: spec.Prefill.ChunkTokens, LoadWeight: spec.PrefixCache.LoadWeight},
		Memory: s.memory, Limit: limit, Drafts: spec.Speculation.Tokens,
		Conservativeness: spec.Conservativeness,
	})
	if err != nil {
		return nil, err
	}
	return s, s.foresee()
}
