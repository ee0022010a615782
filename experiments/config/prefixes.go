package config

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// checkPrefixTiers returns what makes the tiers of a prefix cache below HBM impossible, or nil.
func checkPrefixTiers(s *sim.Spec) *KeyError {
	drive, _ := hw.LoadDrive(s.PrefixDrive) // checkNamed has
	tier, gib := "prefix_dram_gib", s.PrefixDRAM
	if gib == 0 {
		tier, gib = "prefix_ssd_gib", s.PrefixSSD
	}
	switch {
	case !s.CachesPrefixes():
		return &KeyError{Key: tier, Value: Show(gib), With: []string{"prefix_cache"},
			Reason: fmt.Sprintf("is a tier of a prefix cache, and prefix_cache = %q: set it to \"vllm\" "+
				"or \"radix\", or leave the tier out", s.PrefixCache)}
	case s.Offload:
		return &KeyError{Key: tier, Value: Show(gib), With: []string{"offload"},
			Reason: "is below a prefix cache in HBM, and with offload = true, as SparseServe's systems " +
				"have it, that cache is in DRAM: leave the tier out"}
	case s.PrefixDRAM > s.DRAMGiB:
		return &KeyError{Key: "prefix_dram_gib", Value: Show(s.PrefixDRAM), With: []string{"dram_gib"},
			Reason: fmt.Sprintf("is more than the host has for KV: dram_gib = %v", s.DRAMGiB)}
	case s.PrefixSSD*(1<<30) > drive.Size.SI():
		return &KeyError{Key: "prefix_ssd_gib", Value: Show(s.PrefixSSD), With: []string{"prefix_drive"},
			Reason: fmt.Sprintf("is more than drive %s has: %.5g GiB", drive.Name,
				drive.Size.SI()/(1<<30))}
	case s.PrefixChunk%s.BlockTokens != 0:
		return &KeyError{Key: "prefix_chunk", Value: fmt.Sprint(s.PrefixChunk),
			With:   []string{"block_tokens"},
			Reason: fmt.Sprintf("must be a multiple of block_tokens = %d", s.BlockTokens)}
	case s.NoPrefixTiers() != "":
		return &KeyError{Key: tier, Value: Show(gib), With: []string{"prefix_overlap", "base"},
			Reason: s.NoPrefixTiers()}
	}
	return nil
}

// PrefixOptions is how a system moves cached prefixes of a model whose tokens have so much KV, on
// each GPU. A tier has room for a chunk at least.
func PrefixOptions(s *sim.Spec, tokenBytes int64) (hw.PrefixOptions, error) {
	drive, err := hw.LoadDrive(s.PrefixDrive)
	chunk := float64(int64(s.PrefixChunk)*tokenBytes) * float64(s.TensorParallel) / (1 << 30)
	for i, gib := range [...]float64{s.PrefixDRAM, s.PrefixSSD} {
		if gib > 0 && gib < chunk {
			return hw.PrefixOptions{}, &KeyError{Value: Show(gib),
				Key: [...]string{"system.prefix_dram_gib", "system.prefix_ssd_gib"}[i],
				Reason: fmt.Sprintf("has no room for a chunk: prefix_chunk = %d tokens of this model are "+
					"%.4g GiB", s.PrefixChunk, chunk)}
		}
	}
	return hw.PrefixOptions{Drive: drive, GPUs: float64(s.TensorParallel),
		Chunk: int64(s.PrefixChunk) * tokenBytes}, err
}
