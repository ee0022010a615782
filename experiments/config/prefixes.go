package config

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// checkPrefixTiers returns an error if the tiers of a prefix cache below HBM are impossible, or
// nil.
func checkPrefixTiers(s *sim.Spec) *KeyError {
	drive, _ := hw.LoadDrive(s.PrefixCache.Drive) // checkNamed has
	tier, gib := "prefix_cache.dram_gib", s.PrefixCache.DRAMGiB
	if gib == 0 {
		tier, gib = "prefix_cache.ssd_gib", s.PrefixCache.SSDGiB
	}
	switch {
	case !s.CachesPrefixes():
		return &KeyError{Key: tier, Value: Show(gib), With: []string{"prefix_cache.mode"},
			Reason: fmt.Sprintf("is a tier of a prefix cache, and prefix_cache.mode = %q: set it to "+
				`"vllm" or "radix", or leave the tier out`, s.PrefixCache.Mode)}
	case s.Offload.On:
		return &KeyError{Key: tier, Value: Show(gib), With: []string{"offload.on"},
			Reason: "is below a prefix cache in HBM, and with offload.on = true, as SparseServe's systems " +
				"have it, that cache is in DRAM: leave the tier out"}
	case s.PrefixCache.DRAMGiB > s.DRAMGiB:
		return &KeyError{Key: "prefix_cache.dram_gib", Value: Show(s.PrefixCache.DRAMGiB),
			With:   []string{"system.dram_gib"},
			Reason: fmt.Sprintf("is more than the host has for KV: system.dram_gib = %v", s.DRAMGiB)}
	case s.PrefixCache.SSDGiB*(1<<30) > drive.Size.SI():
		return &KeyError{Key: "prefix_cache.ssd_gib", Value: Show(s.PrefixCache.SSDGiB),
			With: []string{"prefix_cache.drive"},
			Reason: fmt.Sprintf("is more than drive %s has: %.5g GiB", drive.Name,
				drive.Size.SI()/(1<<30))}
	case s.PrefixCache.Chunk%s.BlockTokens != 0:
		return &KeyError{Key: "prefix_cache.chunk", Value: fmt.Sprint(s.PrefixCache.Chunk),
			With:   []string{"system.block_tokens"},
			Reason: fmt.Sprintf("must be a multiple of system.block_tokens = %d", s.BlockTokens)}
	case s.NoPrefixTiers() != "":
		return &KeyError{Key: tier, Value: Show(gib), Reason: s.NoPrefixTiers(),
			With: []string{"prefix_cache.overlap", "system.scheduler"}}
	}
	return nil
}

// PrefixOptions returns how a system moves cached prefixes on each GPU. tokenBytes is the KV size
// of a token. A tier has room for at least one chunk.
func PrefixOptions(s *sim.Spec, tokenBytes int64) (hw.PrefixOptions, error) {
	drive, err := hw.LoadDrive(s.PrefixCache.Drive)
	chunk := float64(int64(s.PrefixCache.Chunk)*tokenBytes) * float64(s.TensorParallel) / (1 << 30)
	for i, gib := range [...]float64{s.PrefixCache.DRAMGiB, s.PrefixCache.SSDGiB} {
		if gib > 0 && gib < chunk {
			return hw.PrefixOptions{}, &KeyError{Value: Show(gib),
				Key: [...]string{"prefix_cache.dram_gib", "prefix_cache.ssd_gib"}[i],
				Reason: fmt.Sprintf("has no room for a chunk: prefix_cache.chunk = %d tokens of this "+
					"model are "+
					"%.4g GiB", s.PrefixCache.Chunk, chunk)}
		}
	}
	return hw.PrefixOptions{Drive: drive, GPUs: float64(s.TensorParallel),
		Chunk: int64(s.PrefixCache.Chunk) * tokenBytes}, err
}
