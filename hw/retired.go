package hw

import (
	"fmt"
	"strings"
)

// retiredKeys are those of profiles that earlier builds wrote, and what has their place;
// "" is nothing, as they moved no prediction by more than its noise.
var retiredKeys = map[string]string{
	"head":                  "linears",
	"linear_grid":           "linears",
	"embedding":             "dense_decode.rate",
	"digest":                "block_close",
	"save.ring_launch":      "block_close",
	"save.ring_rate":        "block_close",
	"dense_decode.tail":     "",
	"dense_decode.piece":    "",
	"dense_decode.pages":    "",
	"sparse_decode.cut":     "sparse_decode.wave",
	"sparse_decode.join":    "sparse_decode.wave",
	"sparse_decode.full":    "sparse_decode.wave",
	"scoring.at_once":       "",
	"scoring.long":          "",
	"scoring.room":          "",
	"scoring.per_query":     "",
	"scoring.per_head":      "",
	"scoring.per_long":      "",
	"psa_decode.per_block":  "psa_decode.round",
	"psa_decode.alone":      "psa_decode.round",
	"psa_decode.few":        "psa_decode.few_lists",
	"clock.idle":            "clock.copies",
	"clock.dense":           "clock.memory",
	"clock.linears":         "clock.memory",
	"clock.decode":          "",
	"load.memcpy_start":     "",
	"load.memcpy_whole":     "",
	"load.batched_early":    "",
	"load.batched_first":    "",
	"load.batched_sizes":    "",
	"load.batched_call":     "",
	"load.batched_block":    "",
	"load.flash_queued":     "load.flash_launch",
	"load.flash_idle":       "gaps",
	"load.flash_beside_psa": "",
	"save.memcpy_long":      "",
	"save.memcpy_half":      "",
	"save.memcpy_start":     "",
	"save.memcpy_whole":     "",
	"save.memcpy_pools":     "save.memcpy_call",
	"save.memcpy_beside":    "save.memcpy_beside_pools",
	"save.memcpy_paged":     "save.memcpy_beside_pools",
	"save.flash_wake":       "save.flash_call",
	"save.flash_join":       "save.flash_call",
	"save.flash_block":      "save.flash_call",
	"save.flash_near":       "",
	"link.duplex_gather":    "link.duplex_kernel",
	"host.psa_layer":        "host.layer_sync",
	"host.psa_request":      "host.layer_request",
	"host.psa_rate":         "host.layer_rate",
	"host.turns":            "host.layer_sync",
	"host.psa_turns":        "host.layer_sync",
	"host.whole_list":       "",
	"host.loads":            "host.load",
	"host.loads_half":       "host.load",
	"host.list_copy":        "gaps",
	"host.list_rate":        "gaps",
	"host.kv_write":         "gaps",
	"host.lookup":           "gaps",
	"host.lookup_rate":      "gaps",
	"host.lookup_miss":      "gaps",
	"host.lookup_block":     "gaps",
	"host.cpu_layer":        "gaps",
	"host.cpu_request":      "gaps",
	"host.cpu_rate":         "gaps",
	"host.cpu_load":         "gaps",
	"host.cpu_psa_layer":    "gaps",
	"host.cpu_psa_request":  "gaps",
	"host.cpu_psa_rate":     "gaps",
	"host.cpu_psa_load":     "gaps",
	"host.psa_launch_calls": "",
	"host.submit":           "",
	"host.load_wait":        "host.call_wait",
	"host.copy_wait":        "host.call_wait",
	"host.turn_wait":        "host.call_wait",
}

// retired says what became of a key that profiles of earlier builds have, "" of any other.
func retired(path string) string {
	now, known := retiredKeys[path]
	switch {
	case strings.HasPrefix(path, "gaps[") && (strings.HasSuffix(path, ".kv_heads") || strings.HasSuffix(path, ".requests")):
		return "gaps are one row a kind of layer"
	case strings.HasPrefix(path, "save.scatter[") && strings.HasSuffix(path, ".long"):
		return "no longer used"
	case !known:
		return ""
	case now == "":
		return "no longer used"
	}
	return fmt.Sprintf("whose place %s has taken", now)
}
