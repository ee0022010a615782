package sim

import (
	"fmt"
	"iter"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// sharing is a memory that shares common prompt prefixes and may have tiers below it.
type sharing interface {
	memory
	Check(tables iter.Seq[*prefix.Table]) error
	Lost() (hbm, dram, ssd int64) // evicted blocks, and evicted chunks below
	Read(*prefix.Table)           // adds a reader in the step that is prepared
	Reread() (blocks int64)       // repeated reads of the step; called after all Read calls
	Plan(now des.Time)
	Writes() (dram, ssd int)
	Written(dram, ssd des.Time)
	Kept() (at des.Time, ok bool)
}

// newMemory returns KV memory of the given number of blocks.
func (s *Server) newMemory(blocks int64) (memory, error) {
	spec := &s.Spec
	if s.Model.WindowLayers > 0 {
		if spec.CachesPrefixes() || spec.Offload.On || spec.Sparse() {
			return nil, fmt.Errorf("sim: a model with windows has no prefix cache, offloading or selection")
		}
		w := kv.Windows{Layers: int64(s.Model.WindowLayers),
			Full:   int64(s.Model.Layers - s.Model.WindowLayers),
			Blocks: int64(s.Geometry.Blocks(s.Model.BoundTokens) + 1)}
		return kv.NewWindowBudget(blocks, s.Geometry.BlockTokens, spec.Watermark, w), nil
	}
	if !spec.CachesPrefixes() {
		return kv.NewBudget(blocks, s.Geometry.BlockTokens, spec.Watermark), nil
	}
	if why := spec.NoPrefixCache(); why != "" {
		return nil, fmt.Errorf("sim: a prefix cache %s", why)
	}
	var lower *prefix.Lower
	if spec.PrefixTiers() {
		var ok bool
		if why := spec.NoPrefixTiers(); why != "" {
			return nil, fmt.Errorf("sim: a prefix cache below HBM %s", why)
		}
		if s.tiers, ok = s.Device.(PrefixDevice); !ok {
			return nil, fmt.Errorf("sim: a prefix cache below HBM needs a device that loads from it: %T",
				s.Device)
		}
		chunk := float64(s.chunkBytes())
		lower = &prefix.Lower{
			Chunk: spec.PrefixCache.Chunk / s.Geometry.BlockTokens, Eviction: spec.PrefixCache.Eviction,
			DRAM: int64(spec.PrefixCache.DRAMGiB * (1 << 30) / chunk),
			SSD:  int64(spec.PrefixCache.SSDGiB * (1 << 30) / chunk),
			Back: spec.PrefixCache.Write == WriteBack, Async: spec.PrefixCache.Overlap == OverlapRequest,
		}
		if spec.PrefixCache.Write == WriteSelective {
			lower.Hits = spec.PrefixCache.WriteHits
		}
		if spec.PrefixCache.Eviction == prefix.Belady {
			s.future = prefix.NewFuture(spec.PrefixCache.Chunk)
			lower.Future = s.future
		}
		lower.Worth = s.worth()
		s.landing = map[int]*request{}
	}
	size := s.Geometry.BlockTokens
	if spec.PrefixCache.Mode == PrefixTree {
		s.prefixes = prefix.NewRadix(blocks, size, spec.Watermark, lower)
	} else {
		s.pool = prefix.NewPool(blocks, size, spec.Watermark, lower)
		s.pool.Late = spec.Offload.On // a block can be shared once it is saved
		s.prefixes = s.pool
	}
	return s.prefixes, nil
}

// worth returns the test for loads from the tiers: Spec.PrefixLoad and PrefixLoadTokens.
func (s *Server) worth() func(from, to, ssd int) bool {
	least := s.Spec.PrefixCache.LoadTokens
	return func(from, to, ssd int) bool {
		switch {
		case to-from < least || s.Spec.PrefixCache.Load == LoadNever:
			return false
		case s.Spec.PrefixCache.Load == LoadCheaper:
			return s.PrefixWorth(from, to, ssd)
		}
		return true
	}
}

func (s *Server) chunkBytes() int64 {
	return s.Geometry.TokenBytes() * int64(s.Spec.PrefixCache.Chunk)
}

// share sets the prefix that an arriving request can reuse. With a prefix cache the hit is known
// when the request is scheduled. Otherwise the trace gives it.
func (s *Server) share(r *request) {
	a := &r.arrival
	if s.prefixes == nil {
		r.Grant.Cached = s.prefixHit(a.Cached, r.prompt)
		r.StartAfter(r.Grant.Cached)
		if s.Addressed && a.Content != nil {
			r.table.Reset(a.Content, a.Prompt, r.prompt, r.Output, uint64(r.ID))
		}
		return
	}
	s.content = s.content || a.Content != nil || s.tiers != nil
	r.table.Reset(a.Content, a.Prompt, r.prompt, r.Output, uint64(r.ID))
	if s.tiers != nil {
		r.table.Stored(s.prefixHit(a.Cached, r.prompt))
	}
	r.Grant.Table = &r.table
}

// prefixHit returns the number of prompt tokens that hit the trace's prefix cache: whole blocks,
// and never the whole prompt, because the last token is computed for its logits. With offloading
// the hit is in DRAM.
func (s *Server) prefixHit(cached, prompt int) int {
	block := s.Geometry.BlockTokens
	return min(cached, prompt-1) / block * block
}

// tables yields the tables of all requests.
func (s *Server) tables(yield func(*prefix.Table) bool) {
	for _, r := range s.requests {
		if !yield(&r.table) {
			return
		}
	}
}

// begun records the prefix cache hit of a prefill that begins.
func (s *Server) begun(r *request, first bool) {
	if first {
		r.hit = r.Hit
	}
	if s.prefixes == nil {
		return
	}
	s.weigh(r)
	load, u := r.table.Loaded(), &s.prefixUse
	if first {
		if r.hitDRAM, r.hitSSD = load.Tokens-load.SSD, load.SSD; s.Spec.Offload.On {
			r.hitDRAM = r.Hit
		}
		u.Asked += int64(r.Target)
		u.Hit += int64(r.Hit)
		u.HitDRAM += int64(r.hitDRAM)
		u.HitSSD += int64(r.hitSSD)
	} else {
		u.Again += int64(r.Target)
		u.HitAgain += int64(r.Hit)
	}
	if load.Tokens > 0 && s.Spec.PrefixCache.Overlap != OverlapRequest {
		l, token := &s.step.meta.Prefix, s.Geometry.TokenBytes()
		l.Bytes += int64(load.Tokens) * token
		l.SSD += int64(load.SSD) * token
		l.ByLayer = s.Spec.PrefixCache.Overlap == OverlapLayers
	}
}

// fetchPrefixes makes the device load the prefixes of requests that wait for their loads.
func (s *Server) fetchPrefixes(now des.Time) {
	token := s.Geometry.TokenBytes()
	for _, sr := range s.step.batch.Loading {
		r := s.requests[sr]
		load := r.table.Loaded()
		l := PrefixLoad{Bytes: int64(load.Tokens) * token, SSD: int64(load.SSD) * token}
		s.prefixUse.Loaded += l.Bytes
		s.prefixUse.LoadedSSD += l.SSD
		s.landing[r.ID] = r
		s.schedule(max(now, s.tiers.FetchPrefix(now, l)), landed, int64(r.ID))
	}
}

// prefixLanded resumes a request after its prefix is loaded.
func (s *Server) prefixLanded(id int) {
	r := s.landing[id]
	delete(s.landing, id)
	s.sched.Landed(r.Request)
}

// savePrefixes makes the device write pending chunks to the tiers below HBM, starting at the given
// time. It returns true if any chunk leaves HBM.
func (s *Server) savePrefixes(at des.Time) (any bool) {
	if s.tiers == nil {
		return false
	}
	dram, ssd := s.prefixes.Writes()
	if dram+ssd == 0 {
		return false
	}
	bytes, onSSD := int64(dram)*s.chunkBytes(), int64(ssd)*s.chunkBytes()
	s.prefixUse.Saved += bytes
	s.prefixUse.SavedSSD += onSSD
	s.prefixes.Written(s.tiers.SavePrefix(at, bytes, onSSD))
	return dram > 0
}

// saveEntered makes the device save pages that entered the tree. An earlier step computed their KV.
func (s *Server) saveEntered() {
	if s.Spec.PrefixCache.Mode == PrefixTree && s.Spec.PrefixCache.Write != WriteBack {
		s.savePrefixes(s.events.Now())
	}
}

// awaitPrefixSaves schedules an event for an idle server when blocks that are being saved become
// free.
func (s *Server) awaitPrefixSaves(now des.Time) {
	if s.tiers == nil {
		return
	}
	if at, ok := s.prefixes.Kept(); ok && at > now && at != s.looksAt {
		s.looksAt = at
		s.schedule(at, saveDone, -1) // not tied to a step's saves
	}
}

// notePrefixes adds the prefix cache use since the last step to the record of the ending step.
func (s *Server) notePrefixes() {
	if s.prefixes != nil {
		s.step.rec.Prefix = s.usedPrefixes()
	}
}

// usedPrefixes returns the prefix cache use since the last step ended and resets it.
func (s *Server) usedPrefixes() PrefixUse {
	u, l := s.prefixUse, &s.step.meta.Prefix
	u.Loaded += l.Bytes
	u.LoadedSSD += l.SSD
	*l = PrefixLoad{}
	hbm, dram, ssd := s.prefixes.Lost()
	if s.Spec.Offload.On { // the pool's blocks are in DRAM
		hbm, dram = 0, hbm
	}
	u.Evicted += hbm - s.lost.Evicted
	u.EvictedDRAM += dram - s.lost.EvictedDRAM
	u.EvictedSSD += ssd - s.lost.EvictedSSD
	s.lost = PrefixUse{Evicted: hbm, EvictedDRAM: dram, EvictedSSD: ssd}
	s.prefixUse = PrefixUse{}
	return u
}
