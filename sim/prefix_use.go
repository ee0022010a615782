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

// KeepsContexts reports whether layers with windows keep the KV of whole contexts: with tiers below
// HBM, because vLLM turned its hybrid KV cache manager off where a connector moves KV (until pull
// request 41847), and in a radix tree, as with SGLang's --disable-hybrid-swa-memory.
func (s *Spec) KeepsContexts() bool {
	return s.PrefixTiers() || s.PrefixCache.Mode == PrefixTree
}

// NoPrefixCache returns why a system cannot have a prefix cache, or "".
func (s *Spec) NoPrefixCache() string {
	switch {
	case s.Offload.On && s.PrefixTiers():
		return "has tiers below HBM only where all KV is in HBM: offload.on = true"
	case s.Offload.On && s.PrefixCache.Mode == PrefixTree:
		return "is in DRAM with offload.on = true, as SparseServe's systems have it, and of vLLM's " +
			"blocks there: use \"vllm\""
	case !s.Offload.On && s.Segmented():
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
