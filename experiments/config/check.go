package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/pattern"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// specEnums lists what the keys of a system may be where that is a choice of
// names.
var specEnums = []struct {
	key    string
	values []string
}{
	{"attention", []string{"full", "sparse"}},
	{"selection", dsa.Names()},
	{"select_per", []string{sim.PerKVHead, sim.PerQueryHead}},
	{"psa_stop", []string{"layer", sim.PSAStopHead}},
	{"load_engine", hw.LoadEngines()},
	{"save_engine", hw.SaveEngines()},
	{"lookup", []string{"host", sim.LookupGPU}},
	{"hot_release", sim.HotReleases()},
	{"eviction", kv.EvictionNames()},
	{"pool", []string{"unified", "per-layer"}},
	{"prefix_cache", sim.PrefixCaches()},
	{"prefix_eviction", prefix.Evictions()},
	{"prefix_write", sim.PrefixWrites()},
	{"prefix_load", sim.PrefixLoads()},
	{"prefix_overlap", sim.PrefixOverlaps()},
	{"base", sched.BaseNames()},
	{"sampling", []string{"random", SamplingTopP, SamplingModel}},
	{"use", hw.Uses()},
	{"prefill", []string{"plain", "chunked", "layer", "layer-chunked"}},
	{"prefill_attention", PrefillAttentions()},
	{"prefix_attention", []string{sim.PrefixDense, sim.PrefixSelected}},
	{"over_length", []string{"truncate", "reject"}},
	{"heads", []string{"sampled", "full"}},
}

// SamplingTopP is the value of system.sampling that sorts logits.
const SamplingTopP = "top-p"

// checkSpec returns what makes a system impossible, or nil. The error's key is
// that of the [system] table.
func checkSpec(s *sim.Spec) *KeyError {
	fields := FieldsOf(s)
	value := func(key string) reflect.Value {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == key })
		return fields[i].Value
	}
	for _, e := range specEnums {
		if v := value(e.key).String(); !slices.Contains(e.values, v) {
			return &KeyError{Key: e.key, Value: quote(v), Reason: oneOf("system."+e.key, v, e.values)}
		}
	}
	if err := checkRanges(s, ""); err != nil {
		return err
	}
	if err := checkNamed(s); err != nil {
		return err
	}
	switch {
	case s.Sparse() && s.BudgetTokens < s.BlockTokens:
		return &KeyError{Key: "budget_tokens", Value: fmt.Sprint(s.BudgetTokens),
			Reason: fmt.Sprintf("is below one block of %d tokens", s.BlockTokens)}
	case s.Sparse() && s.WindowBlocks < 1:
		return &KeyError{Key: "window_blocks", Value: fmt.Sprint(s.WindowBlocks),
			Reason: "must be at least 1: the open block has no metadata to select it by"}
	case s.Sparse() && s.SinkBlocks+s.WindowBlocks >= s.BudgetTokens/s.BlockTokens:
		return &KeyError{Key: "sink_blocks", Value: fmt.Sprint(s.SinkBlocks),
			With: []string{"window_blocks", "budget_tokens", "block_tokens"},
			Reason: fmt.Sprintf(
				"with window_blocks = %d leaves nothing of budget_tokens = %d in blocks of %d", s.WindowBlocks,
				s.BudgetTokens, s.BlockTokens)}
	case s.Sparse() && s.Selection == "infinigen" && s.BlockTokens != 1:
		return &KeyError{Key: "block_tokens", Value: fmt.Sprint(s.BlockTokens),
			With: []string{"selection"}, Reason: "must be 1: infinigen selects tokens"}
	case s.Offload && s.Eviction == kv.ByScore && (!s.Sparse() || s.Selections != ""):
		return &KeyError{Key: "eviction", Value: quote(s.Eviction),
			Reason: "needs scores of the blocks, which neither full attention nor recorded selections have"}
	case s.Offload && s.Eviction == kv.ByScore && s.SelectPer == sim.PerQueryHead:
		return &KeyError{Key: "eviction", Value: quote(s.Eviction), With: []string{"select_per"},
			Reason: "goes by the score that a KV head gives a block, and select_per = \"query_head\" has " +
				"one a query head; use another of both"}
	case s.GPULookup() && (!s.Sparse() || s.LoadEngine != "flash"):
		return &KeyError{Key: "lookup", Value: quote(s.Lookup),
			Reason: "needs attention = \"sparse\" and load_engine = \"flash\": what the GPU finds missing " +
				"only a kernel can load without asking the host"}
	case s.Hot() && s.NoHot() != "":
		return &KeyError{Key: "hot_buffer", Value: fmt.Sprint(s.HotBuffer),
			With:   []string{"budget_tokens", "prefill", "selection", "dense_layers", "batch_control"},
			Reason: s.NoHot()}
	case s.Hot() != (s.Offload && s.LoadEngine == hw.LoadSwap):
		return &KeyError{Key: "load_engine", Value: quote(s.LoadEngine), With: []string{"hot_buffer"},
			Reason: fmt.Sprintf("swap is the kernel of hot buffers, and theirs alone: hot_buffer = %d",
				s.HotBuffer)}
	case !s.Hot() && (s.HotRelease == sim.ReleaseShort || s.HostPoolRatio > 0):
		return &KeyError{Key: "hot_buffer", Value: "0", With: []string{"hot_release", "host_pool_ratio"},
			Reason: "hot_release and host_pool_ratio are of hot buffers; set it, as to 4096"}
	case s.NoSpeculation() != "":
		return &KeyError{Key: "speculate_tokens", Value: fmt.Sprint(s.SpeculateTokens),
			With:   []string{"attention", "offload", "prefix_cache", "prefill", "max_tokens"},
			Reason: s.NoSpeculation()}
	case s.SpeculateTokens == 0 && s.Acceptance > 0:
		return &KeyError{Key: "acceptance", Value: Show(s.Acceptance), With: []string{"speculate_tokens"},
			Reason: "is of drafted tokens; set speculate_tokens too, as to 1"}
	case s.PrefillPattern == "" && s.PrefillAttention == sim.PrefillMInference:
		return &KeyError{Key: "prefill_pattern", Value: quote(""), With: []string{"prefill_attention"},
			Reason: "minference needs a file of patterns, or a published mix: " +
				strings.Join(pattern.NamedMixes(), ", ")}
	case s.Offload && s.PrefixDRAM+s.PrefixSSD > 0:
		return checkPrefixTiers(s)
	case s.CachesPrefixes() && s.NoPrefixCache() != "":
		return &KeyError{Key: "prefix_cache", Value: quote(s.PrefixCache),
			With: []string{"offload", "prefill"}, Reason: s.NoPrefixCache()}
	case s.PrefixAttention == sim.PrefixSelected && (!s.Offload || !s.Sparse() || s.Selections != ""):
		return &KeyError{Key: "prefix_attention", Value: quote(s.PrefixAttention),
			Reason: "needs offload = true, attention = \"sparse\" and no recorded selections: " +
				"blocks of a prefix are selected as decodes select, and loaded from DRAM"}
	case s.PrefixAttention == sim.PrefixSelected && s.SparsePrefill():
		return &KeyError{Key: "prefix_attention", Value: quote(s.PrefixAttention),
			With: []string{"prefill_attention"},
			Reason: fmt.Sprintf("prefill_attention = %q has a selection of its own; use one of both",
				s.PrefillAttention)}
	case s.PrefixDRAM+s.PrefixSSD > 0:
		if err := checkPrefixTiers(s); err != nil {
			return err
		}
	case s.Offload && s.DRAMGiB == 0:
		return &KeyError{Key: "dram_gib", Value: "0", Reason: "must be above 0 with offload"}
	}
	return nil
}

// checkNamed refuses names of drives and mixes that are unknown, used or not.
func checkNamed(s *sim.Spec) *KeyError {
	if _, err := hw.LoadDrive(s.PrefixDrive); err != nil {
		return &KeyError{Key: "prefix_drive", Value: quote(s.PrefixDrive), Reason: err.Error()}
	}
	if s.PrefillPattern == "" || slices.Contains(pattern.NamedMixes(), s.PrefillPattern) {
		return nil
	}
	if _, err := ReadPatterns(s.PrefillPattern); err != nil {
		return &KeyError{Key: "prefill_pattern", Value: quote(s.PrefillPattern),
			With: []string{"prefill_attention"}, Reason: err.Error()}
	}
	return nil
}

// oneOf phrases which values a key may have, one at a time.
func oneOf(key, got string, values []string) string {
	if strings.HasPrefix(got, "[") {
		_, name, _ := strings.Cut(key, ".")
		return fmt.Sprintf("one %s a configuration; several are an axis of a sweep, [[axis]] with "+
			"grid.%s = [...] (sparseserve help sweep)", name, key)
	}
	return "unknown; use " + strings.Join(values, ", ") + DidYouMean(got, values)
}
