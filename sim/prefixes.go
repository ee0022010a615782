package sim

import (
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// prefixes reuses the KV of earlier prompts: what the trace declares or, with a prefix cache, what
// memory has, with or without tiers below HBM. With a prefix cache the hit of a request is known
// when the request is scheduled.
type prefixes struct {
	*Config
	memory   memory.Memory
	tiers    PrefixDevice // moves what is below HBM; nil without tiers
	schedule func(at des.Time, kind eventKind, n int64)

	looksAt des.Time            // time of the scheduled event for the end of a save
	landing map[int]*request    // requests by ID whose prefix is being loaded
	used    metrics.PrefixStats // since the last step's record
	lost    [3]int64            // evictions up to the last step's record
}

// newMemory returns KV memory of the given number of blocks.
func (s *Server) newMemory(blocks int64) (memory.Memory, error) {
	spec := &s.Spec
	if why := spec.NoPrefixCache(); spec.CachesPrefixes() && why != "" {
		return nil, fmt.Errorf("sim: a prefix cache %s", why)
	}
	var lower *memory.Lower
	if spec.PrefixTiers() {
		var ok bool
		if why := spec.NoPrefixTiers(); why != "" {
			return nil, fmt.Errorf("sim: a prefix cache below HBM %s", why)
		}
		if s.prefixes.tiers, ok = s.Device.(PrefixDevice); !ok {
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
	if spec.PrefixCache.Mode == PrefixTree {
		return memory.NewRadix(blocks, size, spec.Watermark, lower), nil
	}
	pool := memory.NewPool(blocks, size, spec.Watermark, lower)
	pool.Unshared = !spec.CachesPrefixes()
	if s.Model.WindowLayers > 0 {
		pool.Layers = s.windowLayers()
	}
	pool.Late = spec.Offload.On // a block can be shared once it is saved
	pool.Drafts = spec.Speculation.Tokens > 0
	return pool, nil
}

// windowLayers describes the layers of a model with windows.
func (c *Config) windowLayers() memory.WindowLayers {
	unit, spec := c.layersOfBlock(), &c.Spec
	l := memory.WindowLayers{Full: (c.Model.Layers - c.Model.WindowLayers) / unit,
		Windowed: c.Model.WindowLayers / unit, Tokens: c.Model.BoundTokens, Step: c.Model.MaxContext}
	if spec.Prefill.Split == sched.Chunked && sched.AllocatesByChunk(spec.Scheduler) {
		l.Step = min(l.Step, max(1, min(spec.Prefill.ChunkTokens, spec.MaxTokens)))
	}
	return l
}

// layersOfBlock returns the number of layers whose KV a block of memory holds where some have
// windows: as many as divide both kinds of layers.
func (c *Config) layersOfBlock() int {
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

// arrive sets what an arriving request can reuse.
func (p *prefixes) arrive(r *request) {
	a, caches := &r.arrival, p.Spec.CachesPrefixes()
	if caches || p.Addressed && a.Content != nil {
		r.Grant.Reset(a.Content, a.Prompt, r.Prompt, r.Output, uint64(r.ID))
	}
	if !caches {
		r.Grant.Cached = p.prefixHit(a.Cached, r.Prompt)
		r.StartAfter(r.Grant.Cached)
		return
	}
	if p.Spec.PrefixTiers() {
		r.Grant.Stored(p.prefixHit(a.Cached, r.Prompt))
	}
}

// begin counts the hit of a prefill that begins, for the first time or after a preemption, and adds
// what it loads to its step.
func (p *prefixes) begin(r *request, first bool, l *PrefixLoad) {
	load, u := r.Grant.Loaded(), &p.used
	if first {
		r.record.Hit = r.Hit
	}
	switch rec := &r.record; {
	case !p.Spec.CachesPrefixes():
		return
	case first:
		if rec.HitDRAM, rec.HitSSD = load.Tokens-load.SSD, load.SSD; p.Spec.Offload.On {
			rec.HitDRAM = r.Hit
		}
		u.PromptTokens += int64(r.Target)
		u.HitTokens += int64(r.Hit)
		u.HBM.HitTokens += int64(r.Hit - rec.HitDRAM - rec.HitSSD)
		u.DRAM.HitTokens += int64(rec.HitDRAM)
		u.SSD.HitTokens += int64(rec.HitSSD)
	default:
		u.Preempted.PromptTokens += int64(r.Target)
		u.Preempted.HitTokens += int64(r.Hit)
	}
	if load.Tokens > 0 && p.Spec.PrefixCache.Overlap != OverlapRequest {
		more := p.load(load)
		l.Bytes += more.Bytes
		l.SSD += more.SSD
		l.ByLayer = p.Spec.PrefixCache.Overlap == OverlapLayers
	}
}

// load returns the bytes of a load.
func (p *prefixes) load(l memory.Load) PrefixLoad {
	token := p.Geometry.TokenBytes()
	return PrefixLoad{Bytes: int64(l.Tokens) * token, SSD: int64(l.SSD) * token}
}

// count counts a load.
func (p *prefixes) count(l *PrefixLoad) {
	p.used.DRAM.LoadedBytes += l.Bytes - l.SSD
	p.used.SSD.LoadedBytes += l.SSD
}

// fetch makes the device load the prefix of a request that waits for it. landed ends the load.
func (p *prefixes) fetch(now des.Time, r *request) {
	l := p.load(r.Grant.Loaded())
	p.count(&l)
	p.landing[r.ID] = r
	p.schedule(max(now, p.tiers.FetchPrefix(now, l)), landed, int64(r.ID))
}

func (p *prefixes) landed(id int) *request {
	r := p.landing[id]
	delete(p.landing, id)
	return r
}

// save makes the device write pending chunks to the tiers below HBM, starting at the given time. It
// returns true if any chunk leaves HBM.
func (p *prefixes) save(at des.Time) (any bool) {
	dram, ssd := p.memory.Writes()
	if dram+ssd == 0 {
		return false
	}
	bytes, onSSD := int64(dram)*p.chunkBytes(), int64(ssd)*p.chunkBytes()
	p.used.DRAM.WrittenBytes += bytes
	p.used.SSD.WrittenBytes += onSSD
	p.memory.Written(p.tiers.SavePrefix(at, bytes, onSSD))
	return dram > 0
}

// saveEntered does so for pages that entered a tree: an earlier step computed their KV.
func (p *prefixes) saveEntered(now des.Time) {
	if p.Spec.PrefixCache.Mode == PrefixTree && p.Spec.PrefixCache.Write != WriteBack {
		p.save(now)
	}
}

// await schedules an event for an idle server when blocks that are being saved become free.
func (p *prefixes) await(now des.Time) {
	if at, ok := p.memory.Kept(); ok && at > now && at != p.looksAt {
		p.looksAt = at
		p.schedule(at, saveDone, -1) // not tied to a step's saves
	}
}

// use returns and resets what was used since the last call, with the loads of the ending step.
func (p *prefixes) use(l *PrefixLoad) (u metrics.PrefixStats) {
	if !p.Spec.CachesPrefixes() {
		return u
	}
	p.count(l)
	*l = PrefixLoad{}
	u, p.used = p.used, u
	hbm, dram, ssd := p.memory.Lost()
	if p.Spec.Offload.On { // the pool's blocks are in DRAM
		hbm, dram = 0, hbm
	}
	u.HBM.Evicted, u.DRAM.Evicted, u.SSD.Evicted = hbm-p.lost[0], dram-p.lost[1], ssd-p.lost[2]
	p.lost = [3]int64{hbm, dram, ssd}
	return u
}

// foresee adds the upcoming requests to the prefix cache's Future, with the prompts that the server
// will serve.
func (s *Server) foresee() error {
	if s.future == nil {
		return nil
	}
	if s.Future == nil {
		return errors.New("sim: prefix_cache.eviction = \"belady\" needs the requests to come: " +
			"Config.Future")
	}
	for a, err := range s.Future {
		if err != nil {
			return err
		}
		prompt, limit := s.cut(&a)
		if s.reject(&a, prompt, limit) != "" {
			prompt = 0
		}
		s.future.Add(a.Content, a.Prompt, prompt)
	}
	return nil
}
