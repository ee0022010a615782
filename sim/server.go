package sim

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// Server runs one serving system on one device in virtual time.
type Server struct {
	Config
	*run
	place
	sched    *sched.Scheduler
	memory   residency
	prefixes prefixes
	future   *memory.Future // upcoming requests for Belady; nil otherwise
	sel      *selection
	path     path
	repeater Repeater // nil: the device prices each layer
	requests map[*sched.Request]*request
	free     []*request

	busy        bool
	steps       int64
	step        stepState
	coming      tickets
	arrivedLate []*sched.Request // arrived after the next step was planned
	untried     bool             // waiting requests were not considered for the batch
	leaps
}

// run is what the servers of a run share.
type run struct {
	events  des.Queue[event]
	feed    feed
	nextID  int
	rec     Recorder
	metrics *metrics.Run
	stopped func() error // returns why the run must end, or nil
}

func newRun() *run { return &run{stopped: func() error { return nil }} }

// place is a server's place in a fleet.
type place struct {
	fleet   *Fleet // nil: none
	replica int    // replica number
	number  int32  // server number, unique in the fleet over all restarts
	touched bool   // had an event at this time
	load    load
	sent    *sentPrompts // of router prefix; nil: another
}

// NewServer returns a server with no requests.
func NewServer(cfg Config) (*Server, error) {
	spec := &cfg.Spec
	s := &Server{Config: cfg, run: newRun(), requests: map[*sched.Request]*request{}}
	var err error
	if s.sel, err = newSelection(&s.Config, func() error { return s.stopped() }); err != nil {
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
