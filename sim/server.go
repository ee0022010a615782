package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/pattern"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// Model is what the server needs to know of a model.
type Model struct {
	Layers     int
	KVHeads    int
	Hidden     int
	MaxContext int
	// BoundTokens is what decodes attend to at most in layers that have such a bound, of a window or
	// an indexer; 0: no layer has one.
	BoundTokens int
	// WindowLayers keep the KV of the newest BoundTokens only.
	WindowLayers int
}

// Config describes one server.
type Config struct {
	Spec     Spec
	Model    Model
	Geometry kv.Geometry // of Spec.BlockTokens
	HBMBytes int64       // for KV blocks, metadata and prefill buffers
	Seed     uint64
	Device   Device
	Engine   Engine
	Library  *dsa.Library // selections of sparse attention, by Spec.Policy
	Prefill  *pattern.Mix // of Spec.PrefillAttention; nil = dense
	// Addressed names every row, block and slot to the device (addressed.go), which needs all
	// heads to be simulated.
	Addressed bool
	// Do carries out loops whose iterations are independent, when Addressed; nil does them one
	// by one.
	Do des.Do
	// DeviceSelects has decodes attend to what the device's Score chose; needs Addressed.
	// Library is not used.
	DeviceSelects bool
	// Recording gives selections in place of Library when it is not nil.
	Recording *dsa.Recording
	// Recorder notes what every decode selects, of all heads; it may be nil.
	RecordTo *dsa.RecordingWriter
	// Trace records what decodes select, of the groups in the cache, and when; it may be nil.
	Trace *kv.Trace
	// RecallProxy records the share of attention that each token's selections hold, where
	// Library gives them.
	RecallProxy bool
	// PrefixWorth says whether tokens [from, to) of a prompt, of them so many on SSD, are loaded
	// faster than they are computed; of Spec.PrefixLoad "cheaper".
	PrefixWorth func(from, to, ssd int) bool
	// Good says whether a request that was served kept the service level; nil: nobody asks.
	Good func(*RequestRecord) bool
	// Cutoff leaves the start or the end of the run out of its metrics.
	Cutoff Cutoff
	// CardBytes is the card's HBM, of which FixedBytes hold weights, runtime and activations; 0:
	// not known.
	CardBytes, FixedBytes int64
	// Idle is called when virtual time advances with no step running; it may be nil.
	Idle func(des.Time) error
}

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
	// of memory, that shares what prompts have in common; nil: none does
	prefixes  sharing
	pool      *prefix.Pool     // of them, over tiers; nil: there are none
	tiers     PrefixDevice     // of the prefixes below HBM; nil: there are none
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
	taken       []int64 // scratch of leap
	counted     []int32 // those whose selections are known: all where their sizes differ
}

type event struct {
	kind   eventKind
	server int32 // number of the server that it happens to
	// saveDone: sequence number of the last save done; landed: ID; arrive: place in coming
	n int64
}

type eventKind uint8

const (
	arrive eventKind = iota
	stepDone
	saveDone
	landed
	// of a fleet
	route
	goDown
	comeUp
	goDraining
)

// Events at one time: replicas come and go, saves complete, requests arrive, steps end.
var priority = [...]int8{comeUp: -3, goDown: -2, goDraining: -1, saveDone: 0, landed: 0,
	route: 1, arrive: 1, stepDone: 2}

// NewServer returns a server with no requests.
func NewServer(cfg Config) (*Server, error) {
	spec := &cfg.Spec
	s := &Server{Config: cfg, events: &des.Queue[event]{}, requests: map[*sched.Request]*request{}}
	geo := cfg.Geometry
	blockBytes := geo.BlockBytes * int64(geo.Groups())
	capacity := cfg.HBMBytes
	if spec.Offload {
		capacity = int64(spec.DRAMGiB * (1 << 30))
	} else if spec.Sparse() {
		blockBytes += geo.MetaBytes * int64(geo.Groups())
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
		policy, named, err := spec.Policy()
		if err != nil {
			return nil, err
		}
		s.policy, s.fixed, s.budget = policy, named.Fixed, SelectedBlocks(spec)
	}
	s.layered = spec.Sparse() && !s.external() && cfg.Library.ByLayer()
	sample := kv.FullSample(geo)
	if spec.Heads == "sampled" {
		sample = kv.HashSample(geo, spec.SampleGroups, cfg.Seed)
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
	if err := s.checkPrefixes(); err != nil {
		return nil, err
	}
	var limit sched.Limit
	if spec.Offload && !spec.Hot() {
		cache, err := kv.NewCache(kv.Config{
			Geometry: geo, Sample: sample, HBMBytes: cfg.HBMBytes,
			Eviction: spec.Eviction, PerLayer: spec.Pool == "per-layer", Window: spec.Window,
			Microbatch: s.microbatch(), Score: s.blockScores(), Trace: cfg.Trace,
			Addressed: cfg.Addressed, Tables: cfg.Addressed && spec.GPULookup(), Do: cfg.Do,
		})
		if err != nil {
			return nil, err
		}
		s.cache = cache
		limit = &hbmLimit{s}
	}
	inject := spec.MaxInject
	if inject == 0 {
		inject = int64(spec.ChunkTokens) * int64(cfg.Model.Layers)
	}
	var err error
	s.sched, err = sched.New(sched.Config{
		Base: spec.Base, MaxRequests: spec.MaxRequests, MaxTokens: spec.MaxTokens,
		Planner: sched.Planner{Mode: spec.Prefill, Layers: cfg.Model.Layers, Chunk: spec.ChunkTokens,
			MaxInject: inject, LoadWeight: spec.LoadWeight},
		Memory: s.memory, Limit: limit,
	})
	return s, err
}

// SelectedBlocks returns how many blocks a group attends to, the open block, sinks and window
// included.
func SelectedBlocks(spec *Spec) int { return max(1, spec.BudgetTokens/spec.BlockTokens) }

// microbatch is the blocks of one iteration, 0 where attention is not progressive.
func (s *Server) microbatch() int {
	if !s.Spec.Progressive() {
		return 0
	}
	return s.Spec.Microbatch
}

// Candidates returns how many blocks a group's policy picks in addition to the sinks and the
// window,
// which are charged to the budget.
func Candidates(spec *Spec) int {
	return max(1, SelectedBlocks(spec)-spec.SinkBlocks-spec.WindowBlocks)
}

// Run serves the workload to its end and returns the run's metrics. When ctx ends first it
// returns ctx's error. An error comes with the metrics of what ran until then.
func (s *Server) Run(ctx context.Context, w Workload, rec Recorder) (*Metrics, error) {
	s.stopped = func() error { return context.Cause(ctx) }
	if err := s.begin(w, rec); err != nil {
		return nil, err
	}
	for {
		if ctx.Err() != nil { // each event: a step may take long
			return s.interrupted(), context.Cause(ctx)
		}
		if more, err := s.advance(); err != nil {
			return s.interrupted(), plain(ctx, err)
		} else if !more {
			break
		}
		if checkLaws {
			if err := s.check(); err != nil {
				panic(fmt.Sprintf("sim: at %v, step %d: %v", s.events.Now(), s.steps, err))
			}
		}
	}
	return s.end()
}

// plain returns what ended ctx where err is that, of the step in which it was noticed.
func plain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		return cause
	}
	return err
}

// interruption is why the run, or the fleet's, is to end; nil: it is not.
func (s *Server) interruption() error {
	stopped := s.stopped
	if s.fleet != nil {
		stopped = s.fleet.stopped
	}
	if stopped == nil {
		return nil
	}
	return stopped()
}

// begin takes the first request, or the first of each client, from the workload.
func (s *Server) begin(w Workload, rec Recorder) error {
	s.rec, s.metrics = rec, s.newMetrics(1)
	for range s.feed.begin(w) {
		if err := s.fetch(); err != nil {
			return err
		}
	}
	return nil
}

// newMetrics returns metrics of nothing, of so many servers.
func (c *Config) newMetrics(replicas int) *Metrics {
	m := NewMetrics()
	m.replicas = make([]replicaUse, replicas)
	m.offload, m.blockBytes = c.Spec.Offload, c.Geometry.BlockBytes
	m.prefixes, m.tiers = c.Spec.CachesPrefixes(), c.Spec.PrefixTiers()
	m.good = c.Good
	m.capacity = Capacity{HBM: c.CardBytes, Fixed: c.FixedBytes, KV: c.HBMBytes,
		DRAM: int64(c.Spec.DRAMGiB * (1 << 30))}
	if c.Cutoff.On() {
		m.journal = &journal{}
	}
	if c.Spec.Progressive() {
		m.progressive = c.Model.Layers - c.Spec.DenseLayers
	}
	return m
}

// advance handles one event; more is false when none is left.
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
	if err == nil && !s.events.More() { // a batch sees everything that happens at its start
		err = s.proceed()
	}
	switch {
	case err == nil:
		return true, nil
	case s.feed.broken:
		return false, err // the workload's own words say where it broke
	default:
		return false, fmt.Errorf("at %v, step %d: %w", s.events.Now(), s.steps, err)
	}
}

// interrupted returns the metrics of a run that ends here.
func (s *Server) interrupted() *Metrics {
	s.metrics.end = max(s.metrics.end, s.events.Now())
	return s.metrics.figures(&s.Cutoff)
}

// end closes the books after the last event.
func (s *Server) end() (*Metrics, error) {
	if n := s.sched.Waiting() + s.sched.Running(); n > 0 {
		return nil, fmt.Errorf("sim: %d requests can never be scheduled; the first waits since its "+
			"arrival", n)
	}
	s.noteSample()
	return s.metrics.figures(&s.Cutoff), nil
}

// noteSample notes the error that a sample of the heads brings.
func (s *Server) noteSample() {
	if s.cache != nil && s.cache.Sample.Rate < 1 {
		s.metrics.sampled, s.metrics.groups = len(s.cache.Sample.Groups), s.Geometry.Groups()
		s.metrics.loadError = max(s.metrics.loadError, s.cache.LoadError())
	}
}

func (s *Server) handle(ev event) error {
	switch ev.kind {
	case saveDone:
		return s.markSaved(ev.n)
	case landed:
		s.prefixLanded(int(ev.n))
		return nil
	case stepDone:
		return s.commit(s.events.Now())
	}
	t := s.coming.take(ev.n)
	if err := s.arrival(t); err != nil || !t.pulls {
		return err
	}
	return s.fetch()
}

// proceed begins a step if the device is idle and a request can run.
func (s *Server) proceed() error {
	now := s.events.Now()
	if s.busy {
		return nil
	}
	if s.sched.Waiting()+s.sched.Running()+len(s.arrivedLate) > 0 {
		if err := s.startStep(now); err != nil || s.busy {
			return err
		}
		s.awaitPrefixSaves(now)
	}
	return s.drain(now)
}

// drain asks the device for saves that no step has reported and that a request may wait for.
func (s *Server) drain(now des.Time) error {
	if n := len(s.saves); n == 0 || s.saves[n-1].step < s.savedSteps {
		return nil
	}
	at, err := s.Device.Drain()
	if err != nil {
		return err
	}
	s.completeSaves(max(now, s.step.meta.Start+at), s.steps)
	return nil
}

// completeSaves schedules the completion of the saves of the first n steps.
func (s *Server) completeSaves(at des.Time, n int64) {
	for i := range s.saves {
		if j := s.saves[i].step; j >= s.savedSteps && j < n {
			s.savedSteps = n
			s.schedule(at, saveDone, n-1)
			return
		}
	}
}

func (s *Server) schedule(at des.Time, kind eventKind, n int64) {
	s.events.Schedule(at, priority[kind], event{kind: kind, server: s.number, n: n})
}
