package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// Values of Spec.PrefixCache, PrefixWrite, PrefixLoad and PrefixOverlap.
const (
	PrefixOff  = "off"
	PrefixVLLM = "vllm"
	PrefixTree = "radix"

	WriteThrough   = "through"
	WriteSelective = "selective"
	WriteBack      = "back"

	LoadAlways  = "load"
	LoadNever   = "recompute"
	LoadCheaper = "cheaper"

	OverlapRequest = "request"
	OverlapLayers  = "layers"
	OverlapNone    = "none"
)

// PrefixCaches, PrefixWrites, PrefixLoads and PrefixOverlaps name the values of the keys of the
// prefix cache.
func PrefixCaches() []string   { return []string{PrefixOff, PrefixVLLM, PrefixTree} }
func PrefixWrites() []string   { return []string{WriteThrough, WriteSelective, WriteBack} }
func PrefixLoads() []string    { return []string{LoadAlways, LoadNever, LoadCheaper} }
func PrefixOverlaps() []string { return []string{OverlapRequest, OverlapLayers, OverlapNone} }

// CachesPrefixes says whether requests find the KV of earlier ones.
func (s *Spec) CachesPrefixes() bool {
	return s.PrefixCache.Mode != "" && s.PrefixCache.Mode != PrefixOff
}

// PrefixTiers says whether they find it below HBM, too.
func (s *Spec) PrefixTiers() bool {
	return s.CachesPrefixes() && s.PrefixCache.DRAMGiB+s.PrefixCache.SSDGiB > 0
}

// NoPrefixCache says why a system cannot have a prefix cache, or nothing.
func (s *Spec) NoPrefixCache() string {
	switch {
	case s.Offload.On && s.PrefixTiers():
		return "has tiers below HBM only where all KV is in HBM: offload.on = true"
	case s.Offload.On && s.PrefixCache.Mode == PrefixTree:
		return "is in DRAM with offload.on = true, as SparseServe's systems have it, and of vLLM's " +
			"blocks there: use \"vllm\""
	case !s.Offload.On && s.Prefill.Split != "plain" && s.Prefill.Split != "chunked":
		return fmt.Sprintf("in HBM needs prefills that compute all layers of a token at once: "+
			"prefill.split = %q", s.Prefill.Split)
	}
	return ""
}

// NoPrefixTiers says why a system cannot have one below HBM, or nothing.
func (s *Spec) NoPrefixTiers() string {
	if s.PrefixCache.Overlap == OverlapRequest && !sched.AllocatesByChunk(s.Scheduler) {
		return fmt.Sprintf("has requests wait for their loads only where blocks are allocated chunk by "+
			"chunk, as with system.scheduler = \"vllm-v1\": system.scheduler = %q", s.Scheduler)
	}
	return ""
}

// PrefixDevice is a Device that moves cached prefixes between HBM and the tiers below it, while
// steps run. Times are of the server's clock, and never before those of earlier calls.
type PrefixDevice interface {
	// FetchPrefix begins to load a prefix and returns when it has landed in HBM.
	FetchPrefix(at des.Time, l PrefixLoad) (landed des.Time)
	// SavePrefix begins to save KV to DRAM and to write KV from there to SSD, and returns when each
	// is there.
	SavePrefix(at des.Time, bytes, ssd int64) (dram, onSSD des.Time)
}

// PrefixLoad is KV of a cached prefix that is loaded: bytes in all, and of these from SSD. The
// first layer waits for all of it, or ByLayer each for its part.
type PrefixLoad struct {
	Bytes, SSD int64
	ByLayer    bool
}

// PrefixUse is what requests had from the prefix cache.
type PrefixUse struct {
	Asked           int64 // tokens of prompts whose first prefill began
	Hit             int64 // of these, that were cached
	HitDRAM, HitSSD int64 // of these, below HBM; with offloading all are in DRAM
	// Tokens of prefills that began again after a preemption or a replica's failure, what had been
	// generated among them, and those that were cached, mostly by their own request.
	Again, HitAgain int64
	// Evicted blocks of HBM, and chunks of the tiers below, lost their content to others.
	Evicted, EvictedDRAM, EvictedSSD int64
	// Bytes: loaded to HBM, and of these from SSD; saved to DRAM, or through it to SSD alone;
	// written to SSD.
	Loaded, LoadedSSD, Saved, SavedSSD int64
}

func (u *PrefixUse) add(o *PrefixUse) {
	u.Asked += o.Asked
	u.Hit += o.Hit
	u.HitDRAM += o.HitDRAM
	u.Again += o.Again
	u.HitAgain += o.HitAgain
	u.HitSSD += o.HitSSD
	u.Evicted += o.Evicted
	u.EvictedDRAM += o.EvictedDRAM
	u.EvictedSSD += o.EvictedSSD
	u.Loaded += o.Loaded
	u.LoadedSSD += o.LoadedSSD
	u.Saved += o.Saved
	u.SavedSSD += o.SavedSSD
}

// PrefixStats is what a prefix cache did in a run.
type PrefixStats struct {
	PromptTokens int64   `json:"prompt_tokens"` // of prefills that began, each request's first
	HitTokens    int64   `json:"hit_tokens"`
	HitShare     float64 `json:"hit_share"` // of them
	// Of prefills that began again after a preemption or a replica's failure.
	Preempted PrefixAgain `json:"preempted,omitzero"`
	// Of the hits, and what was evicted: blocks of HBM, chunks below.
	HBM  PrefixTier `json:"hbm"`
	DRAM PrefixTier `json:"dram,omitzero"`
	SSD  PrefixTier `json:"ssd,omitzero"`
}

// PrefixAgain is what prefills after a preemption or a replica's failure had.
type PrefixAgain struct {
	PromptTokens int64 `json:"prompt_tokens"` // and tokens that had been generated
	HitTokens    int64 `json:"hit_tokens"`
}

// PrefixTier is one tier's part of it.
type PrefixTier struct {
	HitTokens    int64 `json:"hit_tokens"`
	Evicted      int64 `json:"evicted"`
	LoadedBytes  int64 `json:"loaded_bytes,omitempty"`  // from it
	WrittenBytes int64 `json:"written_bytes,omitempty"` // to it
}

// stats says what the tiers did; without one of DRAM, what is saved passes through to SSD.
func (u *PrefixUse) stats(dram bool) *PrefixStats {
	below, toDRAM := u.HitDRAM+u.HitSSD, u.Saved
	if !dram {
		toDRAM = 0
	}
	return &PrefixStats{PromptTokens: u.Asked, HitTokens: u.Hit,
		HitShare:  float64(u.Hit) / float64(max(1, u.Asked)),
		Preempted: PrefixAgain{u.Again, u.HitAgain},
		HBM:       PrefixTier{HitTokens: u.Hit - below, Evicted: u.Evicted},
		DRAM: PrefixTier{HitTokens: u.HitDRAM, Evicted: u.EvictedDRAM,
			LoadedBytes: u.Loaded - u.LoadedSSD, WrittenBytes: toDRAM},
		SSD: PrefixTier{HitTokens: u.HitSSD, Evicted: u.EvictedSSD, LoadedBytes: u.LoadedSSD,
			WrittenBytes: u.SavedSSD}}
}
