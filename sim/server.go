package sim

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// Server runs one serving system on one device in virtual time.
type Server struct {
	Config
	events  *des.Queue[event] // own queue, or the fleet's
	fleet   *Fleet            // fleet of this replica; nil: none
	replica int               // replica number
	number  int32             // server number, unique in the fleet over all restarts
	touched bool              // had an event at this time
	sched   *sched.Scheduler
	memory  memory
	// bytes of one block of memory
	memoryBlock int64
	// memory with prefix sharing; nil: no prefix cache
	prefixes  sharing
	content   bool             // prompts may share KV
	pool      *prefix.Pool     // prefixes as a block pool; nil otherwise
	below     tiered           // prefixes as memory with tiers
	tiers     PrefixDevice     // device of the tiers below HBM; nil: no tiers
	future    *prefix.Future   // upcoming requests for Belady; nil otherwise
	looksAt   des.Time         // time of the scheduled event for the end of a save
	landing   map[int]*request // requests by ID whose prefix is being loaded
	prefixUse PrefixUse        // since the last step's record
	lost      PrefixUse        // evictions up to the last step's record
	cache     *kv.Cache        // nil without offloading, and with hot buffers
	hot       *hotBuffers      // nil without hot buffers
	rec       Recorder
	metrics   *Metrics

	sel      *selection
	requests map[*sched.Request]*request
	free     []*request
	nextID   int
	stopped  func() error // returns why the run must end; nil: never

	busy        bool
	batch       *sched.Batch
	steps       int64
	feed        feed
	coming      tickets
	load        load             // load of this replica
	arrivedLate []*sched.Request // arrived after the next step was planned
	untried     bool             // waiting requests were not considered for the batch
	saves       []saveJob        // in flight, oldest first
	savedSteps  int64            // steps whose saves are done or have a scheduled event
	pinned      []*request       // requests whose chunked prefill holds HBM
	step        stepState
	path        path
	stepwise    bool    // fast-forward is off
	leapt       int     // steps that were fast-forwarded
	leaptChunks int     // prefill chunks in these steps
	taken       []int64 // scratch of leap
}

// NewServer returns a server with no requests.
func NewServer(cfg Config) (*Server, error) {
	spec := &cfg.Spec
	s := &Server{Config: cfg, events: &des.Queue[event]{}, requests: map[*sched.Request]*request{}}
	var err error
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
		if s.hot, err = s.newHot(); err != nil {
			return nil, err
		}
		s.memory = s.hot.memory
	}
	if s.sel, err = newSelection(&s.Config, s.interruption); err != nil {
		return nil, err
	}
	s.path = newCounted(s)
	if cfg.Addressed {
		if err := checkAddressed(spec, s.sel.sample.Rate, cfg.DeviceSelects); err != nil {
			return nil, err
		}
		s.path = &addressed{counted: counted{Server: s}}
	}
	if s.Do == nil {
		s.Do = des.OneByOne
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
			Geometry: geo, Sample: s.sel.sample, HBMBytes: cfg.HBMBytes,
			Eviction: spec.Offload.Eviction, PerLayer: spec.Offload.Pool == "per-layer",
			Window:     spec.Offload.WorkingSetSteps,
			Microbatch: s.microbatch(), Score: s.sel.scores(), Trace: cfg.Trace,
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
