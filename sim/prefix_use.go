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

// CachesPrefixes reports whether requests can reuse the KV of earlier ones.
func (s *Spec) CachesPrefixes() bool {
	return s.PrefixCache.Mode != "" && s.PrefixCache.Mode != PrefixOff
}

// PrefixTiers reports whether the prefix cache has tiers below HBM.
func (s *Spec) PrefixTiers() bool {
	return s.CachesPrefixes() && s.PrefixCache.DRAMGiB+s.PrefixCache.SSDGiB > 0
}

// NoPrefixCache returns why a system cannot have a prefix cache, or "".
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

// NoPrefixTiers returns why a system cannot have prefix tiers below HBM, or "".
func (s *Spec) NoPrefixTiers() string {
	if s.PrefixCache.Overlap == OverlapRequest && !sched.AllocatesByChunk(s.Scheduler) {
		return fmt.Sprintf("has requests wait for their loads only where blocks are allocated chunk by "+
			"chunk, as with system.scheduler = \"vllm-v1\": system.scheduler = %q", s.Scheduler)
	}
	return ""
}

// PrefixDevice is a Device that moves cached prefixes between HBM and the tiers below it while
// steps run. Times are on the server's clock and never decrease between calls.
type PrefixDevice interface {
	// FetchPrefix starts to load a prefix and returns when the prefix is in HBM.
	FetchPrefix(at des.Time, l PrefixLoad) (landed des.Time)
	// SavePrefix starts to save bytes of KV to DRAM and to write ssd bytes from DRAM to SSD. It
	// returns when each transfer ends.
	SavePrefix(at des.Time, bytes, ssd int64) (dram, onSSD des.Time)
}

// PrefixLoad is a load of cached prefix KV: Bytes in total, including SSD bytes from SSD. With
// ByLayer each layer waits for its own part. Otherwise the first layer waits for all bytes.
type PrefixLoad struct {
	Bytes, SSD int64
	ByLayer    bool
}

// PrefixUse counts the use of the prefix cache.
type PrefixUse struct {
	Asked           int64 // prompt tokens of first prefills that began
	Hit             int64 // hit tokens
	HitDRAM, HitSSD int64 // hit tokens below HBM; with offloading all hits are in DRAM
	// Again counts tokens of prefills that restarted after a preemption or a replica's failure,
	// generated tokens included. HitAgain counts their cached tokens, which mostly come from the same
	// request.
	Again, HitAgain int64
	// Evicted counts HBM blocks whose content was evicted, EvictedDRAM and EvictedSSD chunks.
	Evicted, EvictedDRAM, EvictedSSD int64
	// Bytes. Loaded: to HBM, including LoadedSSD from SSD. Saved: to DRAM, or through DRAM to SSD if
	// there is no DRAM tier. SavedSSD: written to SSD.
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

// PrefixStats summarises the prefix cache of a run.
type PrefixStats struct {
	PromptTokens int64   `json:"prompt_tokens"` // of first prefills that began
	HitTokens    int64   `json:"hit_tokens"`
	HitShare     float64 `json:"hit_share"` // HitTokens / PromptTokens
	// Preempted counts prefills that restarted after a preemption or a replica's failure.
	Preempted PrefixAgain `json:"preempted,omitzero"`
	// Hits and evictions per tier. Evictions count blocks in HBM and chunks below.
	HBM  PrefixTier `json:"hbm"`
	DRAM PrefixTier `json:"dram,omitzero"`
	SSD  PrefixTier `json:"ssd,omitzero"`
}

// PrefixAgain counts tokens of prefills that restarted after a preemption or a replica's failure.
type PrefixAgain struct {
	PromptTokens int64 `json:"prompt_tokens"` // including generated tokens
	HitTokens    int64 `json:"hit_tokens"`
}

// PrefixTier holds the counts of one tier.
type PrefixTier struct {
	HitTokens    int64 `json:"hit_tokens"`
	Evicted      int64 `json:"evicted"`
	LoadedBytes  int64 `json:"loaded_bytes,omitempty"`  // from this tier
	WrittenBytes int64 `json:"written_bytes,omitempty"` // to this tier
}

// stats summarises the counts. Without a DRAM tier, saves pass through DRAM to SSD and do not count
// as written to DRAM.
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
