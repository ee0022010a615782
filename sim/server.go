package sim

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// Server runs one serving system on one device in virtual time.
type Server struct {
	Config
	events  *des.Queue[event] // its own, or its fleet's
	fleet   *Fleet            // that it is a replica of; nil: none
	replica int               // which one
	number  int32             // of the server among all that the fleet has had
	touched bool              // had an event at this time
	sched   *sched.Scheduler
	memory  memory
	// bytes of one of its blocks
	memoryBlock int64
	// of memory, that shares what prompts have in common; nil: none does
	prefixes  sharing
	content   bool             // a prompt may find KV of another
	pool      *prefix.Pool     // of them; nil: there are none
	below     tiered           // of them, over tiers
	tiers     PrefixDevice     // of the prefixes below HBM; nil: there are none
	future    *prefix.Future   // of what they hold; nil: it is not known
	looksAt   des.Time         // when blocks are free that are being saved to them
	landing   map[int]*request // by ID, whose prefix is being loaded
	prefixUse PrefixUse        // since the last step's record
	lost      PrefixUse        // evictions of the whole run until then
	cache     *kv.Cache        // nil without offloading, and with hot buffers
	hot       *hotBuffers      // nil without
	rec       Recorder
	metrics   *Metrics

	policy  dsa.Policy // of sparse attention
	fixed   bool       // it selects the budget whatever the scores
	layered bool       // it decides for all heads of a layer together
	apart   bool       // it decides for each query head
	// selected blocks a group, sinks and window included; a first guess where not fixed
	budget   int
	requests map[*sched.Request]*request
	free     []*request
	nextID   int
	stopped  func() error // why the run is to end; nil: never

	busy        bool
	batch       *sched.Batch
	steps       int64
	feed        feed
	coming      tickets
	load        load             // of a replica
	arrivedLate []*sched.Request // that came while a step ran whose successor was planned already
	untried     bool             // requests wait that the batch was formed without
	saves       []saveJob        // in flight, oldest first
	savedSteps  int64            // steps whose saves are done, or will be at a scheduled event
	pinned      []*request       // whose chunked prefill holds HBM
	step        stepState
	path        path
	groups      []int32 // (layer, KV head) groups whose blocks the cache follows
	stepwise    bool    // leaps over no step
	leapt       int     // steps without an event
	leaptChunks int     // of prompts, in them
	taken       []int64 // scratch of leap
	counted     []int32 // those whose selections are known: all where their sizes differ
}

// NewServer returns a server with no requests.
func NewServer(cfg Config) (*Server, error) {
	spec := &cfg.Spec
	s := &Server{Config: cfg, events: &des.Queue[event]{}, requests: map[*sched.Request]*request{}}
	geo := cfg.Geometry
	blockBytes := geo.BlockBytes * int64(geo.Groups())
	capacity := cfg.HBMBytes
	if spec.Offload.On {
		capacity = int64(spec.DRAMGiB * (1 << 30))
	} else if spec.Sparse() {
		blockBytes += geo.MetaBytes * int64(geo.Groups())
	}
	if s.memoryBlock = blockBytes; s.Model.WindowLayers > 0 {
		s.memoryBlock = s.layerOfBlocks()
	}
	if err := s.newMemory(capacity / blockBytes); err != nil {
		return nil, err
	}
	if spec.Hot() {
		var err error
		if s.hot, err = s.newHot(); err != nil {
			return nil, err
		}
		s.memory = s.hot.memory
	}
	if spec.Sparse() {
		policy, named, err := spec.Policy(cfg.Model.Queries)
		if err != nil {
			return nil, err
		}
		_, s.apart = policy.(dsa.Union)
		s.policy, s.fixed, s.budget = policy, named.Fixed && !s.apart, SelectedBlocks(spec)
	}
	s.layered = spec.Sparse() && !s.external() && cfg.Library.ByLayer()
	sample := kv.FullSample(geo)
	if spec.Simulation.Heads == "sampled" {
		sample = kv.HashSample(geo, spec.Simulation.Groups, cfg.Seed)
	}
	s.groups = sample.Groups
	if s.counted = s.groups; spec.Sparse() && !s.fixed {
		s.counted = kv.FullSample(geo).Groups
	}
	s.path = newCounted(s)
	if cfg.Addressed {
		if err := checkAddressed(spec, sample.Rate, cfg.DeviceSelects); err != nil {
			return nil, err
		}
		s.path = &addressed{counted: counted{Server: s}}
	}
	if s.Do == nil {
		s.Do = des.OneByOne
	}
	if err := s.checkSelections(sample.Rate); err != nil {
		return nil, err
	}
	if err := s.checkSpeculation(); err != nil {
		return nil, err
	}
	if err := s.checkPrefixes(); err != nil {
		return nil, err
	}
	var limit sched.Limit
	if spec.Offload.On && !spec.Hot() {
		cache, err := kv.NewCache(kv.Config{
			Geometry: geo, Sample: sample, HBMBytes: cfg.HBMBytes,
			Eviction: spec.Offload.Eviction, PerLayer: spec.Offload.Pool == "per-layer",
			Window:     spec.Offload.WorkingSetSteps,
			Microbatch: s.microbatch(), Score: s.blockScores(), Trace: cfg.Trace,
			Addressed: cfg.Addressed, Tables: cfg.Addressed && spec.GPULookup(), Do: cfg.Do,
		})
		if err != nil {
			return nil, err
		}
		s.cache = cache
		limit = &hbmLimit{s}
	}
	inject := spec.Prefill.MaxInject
	if inject == 0 {
		inject = int64(spec.Prefill.ChunkTokens) * int64(cfg.Model.Layers)
	}
	var err error
	s.sched, err = sched.New(sched.Config{
		Base: spec.Scheduler, MaxRequests: spec.MaxRequests, MaxTokens: spec.MaxTokens,
		Planner: sched.Planner{Mode: spec.Prefill.Split, Layers: cfg.Model.Layers, MaxInject: inject,
			Chunk: spec.Prefill.ChunkTokens, LoadWeight: spec.PrefixCache.LoadWeight},
		Memory: s.memory, Limit: limit, Drafts: spec.Speculation.Tokens,
	})
	if err != nil {
		return nil, err
	}
	return s, s.foresee()
}
