package sim

import (
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
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

	touched     bool // had an event at this time
	busy        bool
	steps       int64
	step        stepState
	front       frontEnd
	arrivedLate []*sched.Request // arrived after the next step was planned
	untried     bool             // waiting requests were not considered for the batch
	leaps
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
	s.servers, s.Metrics = []*Server{s}, metrics.New(s.About(1, s.Tokens()))
	return s, s.foresee()
}

// About describes servers with KV memory for the given number of tokens.
func (c *Config) About(replicas int, tokens int64) metrics.About {
	about := metrics.About{Replicas: replicas, Layers: c.Model.Layers, Tokens: tokens,
		BlockBytes: c.Geometry.BlockBytes, Offload: c.Spec.Offload.On,
		KVBytes: c.HBMBytes, DRAMBytes: int64(c.Spec.DRAMGiB * (1 << 30)),
		Prefixes: c.Spec.CachesPrefixes(), Tiers: c.Spec.PrefixTiers(),
		DRAM:    c.Spec.PrefixTiers() && c.Spec.PrefixCache.DRAMGiB > 0,
		Measure: c.Measure}
	if c.Spec.Progressive() {
		about.Progressive = c.Model.Layers - c.Spec.Selection.DenseLayers
	}
	return about
}
