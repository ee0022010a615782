package sim

import (
	"fmt"
	"iter"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// prefixes reuses the KV of earlier prompts: declared, as the trace says, or cached by the server.
type prefixes interface {
	// arrive sets what an arriving request can reuse.
	arrive(*request)
	// begin counts the hit of a prefill that begins, for the first time or after a preemption, and
	// adds what it loads to its step.
	begin(r *request, first bool, l *PrefixLoad)
	// plan precedes the forming of a batch at a time.
	plan(now des.Time)
	// fetch makes the device load the prefix of a request that waits for it. landed ends the load.
	fetch(now des.Time, r *request)
	landed(id int) *request
	// save makes the device write pending chunks to the tiers below HBM, starting at the given time.
	// It returns true if any chunk leaves HBM. saveEntered does so for pages that entered a tree: an
	// earlier step computed their KV. await schedules an event for an idle server when blocks that
	// are being saved become free.
	save(at des.Time) (any bool)
	saveEntered(now des.Time)
	await(now des.Time)
	// read adds a decode to the readers of the step that is prepared. reread returns the tokens that
	// more than one of them reads.
	read(*request)
	reread() (tokens int64)
	// use returns and resets what was used since the last call, with the loads of the ending step.
	use(*PrefixLoad) metrics.PrefixUse
	check() error
}

// declared is the reuse without a prefix cache: hits are those that the trace declares.
type declared struct{ *Config }

func (p declared) plan(des.Time)                         {}
func (p declared) fetch(des.Time, *request)              {}
func (p declared) landed(int) *request                   { return nil }
func (p declared) save(des.Time) bool                    { return false }
func (p declared) saveEntered(des.Time)                  {}
func (p declared) await(des.Time)                        {}
func (p declared) read(*request)                         {}
func (p declared) reread() int64                         { return 0 }
func (p declared) use(*PrefixLoad) (u metrics.PrefixUse) { return u }
func (p declared) check() error                          { return nil }

func (p declared) arrive(r *request) {
	a := &r.arrival
	r.Grant.Cached = p.prefixHit(a.Cached, r.Prompt)
	r.StartAfter(r.Grant.Cached)
	if p.Addressed && a.Content != nil {
		r.table.Reset(a.Content, a.Prompt, r.Prompt, r.Output, uint64(r.ID))
	}
}

func (p declared) begin(r *request, first bool, _ *PrefixLoad) {
	if first {
		r.record.Hit = r.Hit
	}
}

// cached is a prefix cache, with or without tiers below HBM. With it the hit of a request is known
// when the request is scheduled.
type cached struct {
	*Config
	memory   sharing
	tiers    PrefixDevice // moves what is below HBM; nil without tiers
	requests map[*sched.Request]*request
	schedule func(at des.Time, kind EventKind, n int64)

	looksAt des.Time          // time of the scheduled event for the end of a save
	landing map[int]*request  // requests by ID whose prefix is being loaded
	used    metrics.PrefixUse // since the last step's record
	lost    metrics.PrefixUse // evictions up to the last step's record
}

// sharing is a memory that shares common prompt prefixes and may have tiers below it.
type sharing interface {
	allocator
	Check(tables iter.Seq[*memory.Table]) error
	Lost() (hbm, dram, ssd int64) // evicted blocks, and evicted chunks below
	Read(*memory.Table)           // adds a reader in the step that is prepared
	Reread() (blocks int64)       // repeated reads of the step; called after all Read calls
	Plan(now des.Time)
	Writes() (dram, ssd int)
	Written(dram, ssd des.Time)
	Kept() (at des.Time, ok bool)
}

// newMemory returns KV memory of the given number of blocks.
func (s *Server) newMemory(blocks int64) (allocator, error) {
	spec := &s.Spec
	s.prefixes = declared{&s.Config}
	if s.Model.WindowLayers > 0 && (spec.Offload.On || spec.Sparse()) {
		return nil, fmt.Errorf("sim: a model with windows has no offloading or selection")
	}
	if s.Model.WindowLayers > 0 && !spec.CachesPrefixes() {
		w := memory.Windows{Layers: int64(s.Model.WindowLayers),
			Full:   int64(s.Model.Layers - s.Model.WindowLayers),
			Blocks: int64(s.Geometry.Blocks(s.Model.BoundTokens) + 1)}
		return memory.NewWindowBudget(blocks, s.Geometry.BlockTokens, spec.Watermark, w), nil
	}
	if !spec.CachesPrefixes() {
		return memory.NewBudget(blocks, s.Geometry.BlockTokens, spec.Watermark), nil
	}
	if why := spec.NoPrefixCache(); why != "" {
		return nil, fmt.Errorf("sim: a prefix cache %s", why)
	}
	c := &cached{Config: &s.Config, requests: s.requests, schedule: s.schedule,
		landing: map[int]*request{}}
	s.prefixes = c
	var lower *memory.Lower
	if spec.PrefixTiers() {
		var ok bool
		if why := spec.NoPrefixTiers(); why != "" {
			return nil, fmt.Errorf("sim: a prefix cache below HBM %s", why)
		}
		if c.tiers, ok = s.Device.(PrefixDevice); !ok {
			return nil, fmt.Errorf("sim: a prefix cache below HBM needs a device that loads from it: %T",
				s.Device)
		}
		chunk := float64(s.chunkBytes())
		lower = &memory.Lower{
			Chunk: spec.PrefixCache.Chunk / s.Geometry.BlockTokens, Eviction: spec.PrefixCache.Eviction,
			DRAM: int64(spec.PrefixCache.DRAMGiB * (1 << 30) / chunk),
			SSD:  int64(spec.PrefixCache.SSDGiB * (1 << 30) / chunk),
			Back: spec.PrefixCache.Write == WriteBack, Async: spec.PrefixCache.Overlap == OverlapRequest,
		}
		if spec.PrefixCache.Write == WriteSelective {
			lower.Hits = spec.PrefixCache.WriteHits
		}
		if spec.PrefixCache.Eviction == memory.Belady {
			s.future = memory.NewFuture(spec.PrefixCache.Chunk)
			lower.Future = s.future
		}
		lower.Worth = s.worth()
	}
	size := s.Geometry.BlockTokens
	if s.Model.WindowLayers > 0 {
		if lower != nil || spec.PrefixCache.Mode == PrefixTree || s.Model.WindowLayers == s.Model.Layers {
			return nil, fmt.Errorf("sim: a prefix cache with windows is vLLM's, in HBM, and some layers " +
				"keep whole contexts")
		}
		pool := memory.NewWindowPool(blocks, size, spec.Watermark, s.windowLayers())
		pool.Drafts = spec.Speculation.Tokens > 0
		c.memory = pool
		return c.memory, nil
	}
	if spec.PrefixCache.Mode == PrefixTree {
		c.memory = memory.NewRadix(blocks, size, spec.Watermark, lower)
	} else {
		pool := memory.NewPool(blocks, size, spec.Watermark, lower)
		pool.Late = spec.Offload.On // a block can be shared once it is saved
		pool.Drafts = spec.Speculation.Tokens > 0
		c.memory = pool
	}
	return c.memory, nil
}

// windowLayers describes the layers of a model with windows and a prefix cache.
func (c *Config) windowLayers() memory.WindowLayers {
	unit, spec := c.layersOfBlock(), &c.Spec
	l := memory.WindowLayers{Full: (c.Model.Layers - c.Model.WindowLayers) / unit,
		Windowed: c.Model.WindowLayers / unit, Tokens: c.Model.BoundTokens, Step: c.Model.MaxContext}
	if spec.Prefill.Split == "chunked" && sched.AllocatesByChunk(spec.Scheduler) {
		l.Step = min(l.Step, max(1, min(spec.Prefill.ChunkTokens, spec.MaxTokens)))
	}
	return l
}

// layersOfBlock returns the number of layers whose KV a block of memory holds where some have
// windows: one, or with a prefix cache as many as divide both kinds of layers.
func (c *Config) layersOfBlock() int {
	if !c.Spec.CachesPrefixes() {
		return 1
	}
	a, b := c.Model.WindowLayers, c.Model.Layers-c.Model.WindowLayers
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// worth returns the test for loads from the tiers: Spec.PrefixLoad and PrefixLoadTokens.
func (c *Config) worth() func(from, to, ssd int) bool {
	least := c.Spec.PrefixCache.LoadTokens
	return func(from, to, ssd int) bool {
		switch {
		case to-from < least || c.Spec.PrefixCache.Load == LoadNever:
			return false
		case c.Spec.PrefixCache.Load == LoadCheaper:
			return c.PrefixWorth(from, to, ssd)
		}
		return true
	}
}

func (c *Config) chunkBytes() int64 {
	return c.Geometry.TokenBytes() * int64(c.Spec.PrefixCache.Chunk)
}

// prefixHit returns the number of prompt tokens that hit the trace's prefix cache: whole blocks,
// and never the whole prompt, because the last token is computed for its logits. With offloading
// the hit is in DRAM.
func (c *Config) prefixHit(cached, prompt int) int {
	block := c.Geometry.BlockTokens
	return min(cached, prompt-1) / block * block
}

func (c *cached) arrive(r *request) {
	a := &r.arrival
	r.table.Reset(a.Content, a.Prompt, r.Prompt, r.Output, uint64(r.ID))
	if c.Spec.PrefixTiers() {
		r.table.Stored(c.prefixHit(a.Cached, r.Prompt))
	}
	r.Grant.Table = &r.table
}

func (c *cached) check() error {
	tables := func(yield func(*memory.Table) bool) {
		for _, r := range c.requests {
			if !yield(&r.table) {
				return
			}
		}
	}
	if err := c.memory.Check(tables); err != nil {
		return fmt.Errorf("law 1: %w", err)
	}
	return nil
}

func (c *cached) begin(r *request, first bool, l *PrefixLoad) {
	load, u := r.table.Loaded(), &c.used
	if first {
		rec := &r.record
		rec.Hit = r.Hit
		if rec.HitDRAM, rec.HitSSD = load.Tokens-load.SSD, load.SSD; c.Spec.Offload.On {
			rec.HitDRAM = r.Hit
		}
		u.Asked += int64(r.Target)
		u.Hit += int64(r.Hit)
		u.HitDRAM += int64(rec.HitDRAM)
		u.HitSSD += int64(rec.HitSSD)
	} else {
		u.Again += int64(r.Target)
		u.HitAgain += int64(r.Hit)
	}
	if load.Tokens > 0 && c.Spec.PrefixCache.Overlap != OverlapRequest {
		token := c.Geometry.TokenBytes()
		l.Bytes += int64(load.Tokens) * token
		l.SSD += int64(load.SSD) * token
		l.ByLayer = c.Spec.PrefixCache.Overlap == OverlapLayers
	}
}

func (c *cached) plan(now des.Time) { c.memory.Plan(now) }
func (c *cached) read(r *request)   { c.memory.Read(&r.table) }

func (c *cached) reread() (tokens int64) {
	return c.memory.Reread() * int64(c.Geometry.BlockTokens)
}

func (c *cached) fetch(now des.Time, r *request) {
	load, token := r.table.Loaded(), c.Geometry.TokenBytes()
	l := PrefixLoad{Bytes: int64(load.Tokens) * token, SSD: int64(load.SSD) * token}
	c.used.Loaded += l.Bytes
	c.used.LoadedSSD += l.SSD
	c.landing[r.ID] = r
	c.schedule(max(now, c.tiers.FetchPrefix(now, l)), landed, int64(r.ID))
}

func (c *cached) landed(id int) *request {
	r := c.landing[id]
	delete(c.landing, id)
	return r
}

func (c *cached) save(at des.Time) (any bool) {
	dram, ssd := c.memory.Writes()
	if dram+ssd == 0 {
		return false
	}
	bytes, onSSD := int64(dram)*c.chunkBytes(), int64(ssd)*c.chunkBytes()
	c.used.Saved += bytes
	c.used.SavedSSD += onSSD
	c.memory.Written(c.tiers.SavePrefix(at, bytes, onSSD))
	return dram > 0
}

func (c *cached) saveEntered(now des.Time) {
	if c.Spec.PrefixCache.Mode == PrefixTree && c.Spec.PrefixCache.Write != WriteBack {
		c.save(now)
	}
}

func (c *cached) await(now des.Time) {
	if at, ok := c.memory.Kept(); ok && at > now && at != c.looksAt {
		c.looksAt = at
		c.schedule(at, saveDone, -1) // not tied to a step's saves
	}
}

func (c *cached) use(l *PrefixLoad) metrics.PrefixUse {
	u := c.used
	u.Loaded += l.Bytes
	u.LoadedSSD += l.SSD
	*l = PrefixLoad{}
	hbm, dram, ssd := c.memory.Lost()
	if c.Spec.Offload.On { // the pool's blocks are in DRAM
		hbm, dram = 0, hbm
	}
	u.Evicted += hbm - c.lost.Evicted
	u.EvictedDRAM += dram - c.lost.EvictedDRAM
	u.EvictedSSD += ssd - c.lost.EvictedSSD
	c.lost = metrics.PrefixUse{Evicted: hbm, EvictedDRAM: dram, EvictedSSD: ssd}
	c.used = metrics.PrefixUse{}
	return u
}
