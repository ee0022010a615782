package config

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// tierRules are about the tiers of a prefix cache below HBM.
var tierRules = slices.Concat(
	tier(rule{with: "prefix_cache.mode",
		reason: "is a tier of a prefix cache, and prefix_cache.mode = {prefix_cache.mode}: set it to " +
			`"vllm" or "radix", or leave the tier out`,
		when: ofSystem(func(s *sim.Spec) bool { return !s.CachesPrefixes() })}),
	tier(rule{with: "offload.on",
		reason: "is below a prefix cache in HBM, and with offload.on = true, as SparseServe's systems " +
			"have it, that cache is in DRAM: leave the tier out",
		when: ofSystem(func(s *sim.Spec) bool { return s.Offload.On })}),
	[]rule{
		{key: "prefix_cache.dram_gib", with: "system.dram_gib",
			reason: "is more than the host has for KV: system.dram_gib = {system.dram_gib}",
			when:   ofSystem(func(s *sim.Spec) bool { return s.PrefixCache.DRAMGiB > s.DRAMGiB })},
		{key: "prefix_cache.ssd_gib", with: "prefix_cache.drive", why: bySystem(func(s *sim.Spec) string {
			drive, _ := hw.LoadDrive(s.PrefixCache.Drive) // another rule has the error
			if s.PrefixCache.SSDGiB*(1<<30) <= drive.Size.SI() {
				return ""
			}
			return fmt.Sprintf("is more than drive %s has: %.5g GiB", drive.Name, drive.Size.SI()/(1<<30))
		})},
		{key: "prefix_cache.chunk", with: "system.block_tokens",
			reason: "must be a multiple of system.block_tokens = {system.block_tokens}",
			when: ofSystem(func(s *sim.Spec) bool {
				return tiersSet(s) && s.PrefixCache.Chunk%s.BlockTokens != 0
			})},
	},
	tier(rule{with: "prefix_cache.overlap system.scheduler",
		why: bySystem((*sim.Spec).NoPrefixTiers)}))

// tier returns a rule about the tiers of a prefix cache that are set, for DRAM or else for SSD.
func tier(r rule) []rule {
	both := [2]rule{r, r}
	for i, key := range []string{"prefix_cache.dram_gib", "prefix_cache.ssd_gib"} {
		both[i].key, both[i].why = key, func(p *Point, m *llm.Model) string {
			if s := &p.System; !tiersSet(s) || (s.PrefixCache.DRAMGiB == 0) != (i == 1) {
				return ""
			}
			return r.against(p, m)
		}
	}
	return both[:]
}

// PrefixOptions returns how a system moves cached prefixes on each GPU. tokenBytes is the KV size
// of a token. A tier has room for at least one chunk.
func PrefixOptions(s *sim.Spec, tokenBytes int64) (cost.PrefixOptions, error) {
	drive, err := hw.LoadDrive(s.PrefixCache.Drive)
	chunk := float64(int64(s.PrefixCache.Chunk)*tokenBytes) * float64(s.TensorParallel) / (1 << 30)
	for i, gib := range [...]float64{s.PrefixCache.DRAMGiB, s.PrefixCache.SSDGiB} {
		if gib > 0 && gib < chunk {
			return cost.PrefixOptions{}, &KeyError{Value: Show(gib),
				Key: [...]string{"prefix_cache.dram_gib", "prefix_cache.ssd_gib"}[i],
				Reason: fmt.Sprintf("has no room for a chunk: prefix_cache.chunk = %d tokens of this "+
					"model are "+
					"%.4g GiB", s.PrefixCache.Chunk, chunk)}
		}
	}
	return cost.PrefixOptions{Drive: drive, GPUs: float64(s.TensorParallel),
		Chunk: int64(s.PrefixCache.Chunk) * tokenBytes}, err
}
