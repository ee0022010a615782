package hw

import (
	"fmt"
	"slices"
	"strings"
)

// renamedKeys maps former names of keys to present ones. The figures are the same.
var renamedKeys = map[string]string{
	"clock.alone":              "clock.gemm_steady_ratio",
	"clock.meter":              "clock.power_filter",
	"clock.pace":               "clock.frequency_slew",
	"clock.copies":             "clock.copy_power",
	"clock.memory":             "clock.memory_bound_power",
	"host.verdict":             "host.continue_latency",
	"host.freed_block":         "host.free_block",
	"host.load":                "host.load_block",
	"gaps":                     "layer_overhead",
	"save.memcpy_beside_pools": "save.memcpy_overlapped_pools",
	"psa_decode.few_lists":     "psa_decode.cluster_lists",
	"scoring.unclustered":      "scoring.unclustered",
}

// retiredKeys maps a present key to the keys of older profiles that it replaces. Keys under "" have
// no replacement; each was worth less than 0.2 points of a step's error.
var retiredKeys = map[string]string{
	"linears":           "head linear_grid",
	"grids":             "paged_prefill.stream",
	"dense_decode.rate": "embedding",
	"block_close":       "digest save.ring_launch save.ring_rate",
	"": "dense_decode.tail dense_decode.piece dense_decode.pages " +
		"scoring.at_once scoring.long scoring.room scoring.per_query " +
		"scoring.per_head scoring.per_long clock.decode load.memcpy_start " +
		"load.memcpy_early load.memcpy_first load.memcpy_warmup load.memcpy_warmup_blocks " +
		"load.memcpy_pools clock.attention clock.attention_power " +
		"host.driver_contention host.call_wait host.load_wait host.copy_wait host.turn_wait " +
		"load.memcpy_whole load.batched_early load.batched_first " +
		"load.batched_sizes load.batched_call load.batched_block " +
		"load.flash_beside_psa save.memcpy_long save.memcpy_half " +
		"save.memcpy_start save.memcpy_whole save.flash_near host.whole_list " +
		"host.psa_launch_calls host.submit",
	"sparse_decode.wave":       "sparse_decode.cut sparse_decode.join sparse_decode.full",
	"psa_decode.round":         "psa_decode.per_block psa_decode.alone",
	"psa_decode.cluster_lists": "psa_decode.few",
	"clock.copy_power":         "clock.idle",
	"clock.memory_bound_power": "clock.dense clock.linears",
	"load.flash_launch":        "load.flash_queued",
	"layer_overhead": "load.flash_idle host.list_copy host.list_rate host.kv_write " +
		"host.lookup host.lookup_rate host.lookup_miss host.lookup_block " +
		"host.cpu_layer host.cpu_request host.cpu_rate host.cpu_load " +
		"host.cpu_psa_layer host.cpu_psa_request host.cpu_psa_rate " +
		"host.cpu_psa_load",
	"save.memcpy_call":             "save.memcpy_pools",
	"save.memcpy_overlapped_pools": "save.memcpy_beside save.memcpy_paged",
	"save.flash_call":              "save.flash_wake save.flash_join save.flash_block",
	"link.duplex_kernel":           "link.duplex_gather",
	"host.layer_sync":              "host.psa_layer host.turns host.psa_turns",
	"host.layer_request":           "host.psa_request",
	"host.layer_rate":              "host.psa_rate",
	"host.load_block":              "host.loads host.loads_half",
}

// retired describes the replacement of a key from an older profile; "" for any other key.
func retired(path string) string {
	const refit = ": fit the profile anew from its samples (calibrate refit)"
	const unused = "no longer used: remove it, or fit the profile anew from its samples " +
		"(calibrate refit)"
	for old, now := range renamedKeys {
		if path == old || strings.HasPrefix(path, old+"[") {
			return "renamed to " + now
		}
	}
	if strings.HasPrefix(path, "save.scatter[") && strings.HasSuffix(path, ".long") {
		return unused
	}
	for now, before := range retiredKeys {
		switch {
		case !slices.Contains(strings.Fields(before), path):
		case now == "":
			return unused
		default:
			return fmt.Sprintf("whose place %s has taken", now) + refit
		}
	}
	return ""
}
