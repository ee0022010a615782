package config

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// checkPrefixTiers returns what makes the tiers of a prefix cache below HBM impossible, or nil.
func checkPrefixTiers(s *sim.Spec) *KeyError {
	drive, err := hw.LoadDrive(s.PrefixDrive)
	switch {
	case err != nil:
		return &KeyError{Key: "prefix_drive", Value: quote(s.PrefixDrive), Reason: err.Error()}
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
		key, value := "prefix_dram_gib", Show(s.PrefixDRAM)
		if s.PrefixDRAM == 0 {
			key, value = "prefix_ssd_gib", Show(s.PrefixSSD)
		}
		return &KeyError{Key: key, Value: value, With: []string{"prefix_overlap", "base"},
			Reason: s.NoPrefixTiers()}
	}
	return nil
}

// PrefixOptions is how a system moves cached prefixes of a model whose tokens have so much KV, on
// each GPU.
func PrefixOptions(s *sim.Spec, tokenBytes int64) (hw.PrefixOptions, error) {
	drive, err := hw.LoadDrive(s.PrefixDrive)
	return hw.PrefixOptions{Drive: drive, GPUs: float64(s.TensorParallel),
		Chunk: int64(s.PrefixChunk) * tokenBytes}, err
}
