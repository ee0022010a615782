package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/pattern"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// SamplingTopP is the value of system.sampling that sorts logits.
const SamplingTopP = "top-p"

// specEnums lists the permitted names of system keys that are a choice of names.
var specEnums = []struct {
	key    string
	values []string
}{
	{"system.use", hw.Uses()},
	{"system.scheduler", sched.BaseNames()},
	{"system.kv_dtype", []string{kvAuto, "bf16", "fp8"}},
	{"system.sampling", []string{"random", SamplingTopP, SamplingModel}},
	{"selection.policy", dsa.Names()},
	{"selection.per", []string{sim.PerKVHead, sim.PerQueryHead}},
	{"selection.stop", []string{"layer", sim.PSAStopHead}},
	{"offload.load", cost.LoadEngines()},
	{"offload.save", cost.SaveEngines()},
	{"offload.lookup", []string{"host", sim.LookupGPU}},
	{"offload.eviction", kv.EvictionNames()},
	{"offload.pool", []string{"unified", "per-layer"}},
	{"offload.hot_release", sim.HotReleases()},
	{"prefill.split", []string{"plain", "chunked", "layer", "layer-chunked"}},
	{"prefill.over_length", []string{"truncate", "reject"}},
	{"prefill.attention", PrefillAttentions()},
	{"prefix_cache.mode", sim.PrefixCaches()},
	{"prefix_cache.eviction", memory.Evictions()},
	{"prefix_cache.write", sim.PrefixWrites()},
	{"prefix_cache.load", sim.PrefixLoads()},
	{"prefix_cache.overlap", sim.PrefixOverlaps()},
	{"prefix_cache.attend", []string{sim.PrefixDense, sim.PrefixSelected}},
	{"simulation.heads", []string{"sampled", "full"}},
}

// wholeKey returns the whole name of a key of a table's struct. Keys of its parts have tables of
// their own.
func wholeKey(table, key string) string {
	if strings.Contains(key, ".") {
		return key
	}
	return table + "." + key
}

// specKey is wholeKey of sim.Spec.
func specKey(key string) string { return wholeKey("system", key) }

// specField returns the value of a key of a system.
func specField(s *sim.Spec, key string) reflect.Value {
	v, _, ok := fieldNamed(s, strings.TrimPrefix(key, "system."))
	if !ok {
		panic("no key " + key + " in a system")
	}
	return v
}

// rule refuses systems in which a key has a value that its conditions exclude.
type rule struct {
	key    string
	with   string // keys that it cannot stand with
	when   func(*sim.Spec) bool
	reason string // {KEY} is the value of another key
	// why, if set, replaces both: it returns the reason against the value, or "".
	why func(*sim.Spec) string
}

// rules are checked in this order. The first that refuses holds.
var rules = slices.Concat(selectionRules, offloadRules, speculationRules, prefillRules,
	prefixCacheRules, tierRules, []rule{
		{key: "system.dram_gib", reason: "must be above 0 with offload",
			when: func(s *sim.Spec) bool { return s.Offload.On && s.DRAMGiB == 0 }}})

var selectionRules = []rule{
	{key: "selection.budget_tokens", reason: "is below one block of {system.block_tokens} tokens",
		when: func(s *sim.Spec) bool { return s.Sparse() && s.Selection.BudgetTokens < s.BlockTokens }},
	{key: "selection.recent_blocks",
		reason: "must be at least 1: the open block has no metadata to select it by",
		when:   func(s *sim.Spec) bool { return s.Sparse() && s.Selection.RecentBlocks < 1 }},
	{key: "selection.sink_blocks",
		with: "selection.recent_blocks selection.budget_tokens system.block_tokens",
		reason: "with selection.recent_blocks = {selection.recent_blocks} leaves nothing of " +
			"selection.budget_tokens = {selection.budget_tokens} in blocks of {system.block_tokens}",
		when: func(s *sim.Spec) bool {
			fixed := s.Selection.SinkBlocks + s.Selection.RecentBlocks
			return s.Sparse() && fixed >= s.Selection.BudgetTokens/s.BlockTokens
		}},
	{key: "system.block_tokens", with: "selection.policy",
		reason: "must be 1: infinigen selects tokens",
		when: func(s *sim.Spec) bool {
			return s.Sparse() && s.Selection.Policy == "infinigen" && s.BlockTokens != 1
		}},
}

var offloadRules = []rule{
	{key: "offload.eviction",
		reason: "needs scores of the blocks, which neither full attention nor recorded selections have",
		when: func(s *sim.Spec) bool {
			return evictsByScore(s) && (!s.Sparse() || s.Selection.Recording != "")
		}},
	{key: "offload.eviction", with: "selection.per",
		reason: `goes by the score that a KV head gives a block, and selection.per = "query_head" has ` +
			"one a query head; use another of both",
		when: func(s *sim.Spec) bool { return evictsByScore(s) && s.Selection.Per == sim.PerQueryHead }},
	{key: "offload.lookup",
		reason: `needs selection.on = true and offload.load = "flash": what the GPU finds missing ` +
			"only a kernel can load without asking the host",
		when: func(s *sim.Spec) bool {
			return s.GPULookup() && (!s.Sparse() || s.Offload.Load != "flash")
		}},
	{key: "offload.hot_buffer", why: ifHot((*sim.Spec).NoHot),
		with: "selection.budget_tokens prefill.split selection.policy selection.dense_layers " +
			"offload.batch_control prefix_cache.attend"},
	{key: "offload.load", with: "offload.hot_buffer",
		reason: "swap is the kernel of hot buffers, and theirs alone: offload.hot_buffer = " +
			"{offload.hot_buffer}",
		when: func(s *sim.Spec) bool {
			return s.Hot() != (s.Offload.On && s.Offload.Load == cost.LoadSwap)
		}},
	{key: "offload.hot_buffer", with: "offload.hot_release offload.host_pool_ratio",
		reason: "hot_release and host_pool_ratio need a hot buffer; set it, as to 4096",
		when: func(s *sim.Spec) bool {
			return !s.Hot() &&
				(s.Offload.HotRelease == sim.ReleaseShort || s.Offload.HostPoolRatio > 0)
		}},
}

var speculationRules = []rule{
	{key: "speculation.tokens", why: (*sim.Spec).NoSpeculation,
		with: "selection.policy offload.on prefill.split system.max_tokens"},
	{key: "speculation.acceptance", with: "speculation.tokens",
		reason: "needs drafted tokens; set speculation.tokens too, as to 1",
		when: func(s *sim.Spec) bool {
			return s.Speculation.Tokens == 0 && s.Speculation.Acceptance > 0
		}},
}

var prefillRules = []rule{
	{key: "prefill.pattern", with: "prefill.attention",
		reason: "minference needs a file of patterns, or a published mix: " +
			strings.Join(pattern.NamedMixes(), ", "),
		when: func(s *sim.Spec) bool {
			return s.Prefill.Pattern == "" && s.Prefill.Attention == sim.PrefillMInference
		}},
}

var prefixCacheRules = []rule{
	{key: "prefix_cache.mode", with: "offload.on prefill.split", why: func(s *sim.Spec) string {
		if s.CachesPrefixes() && !(s.Offload.On && tiersSet(s)) {
			return s.NoPrefixCache()
		}
		return ""
	}},
	{key: "prefix_cache.attend",
		reason: "needs offload.on = true, selection.on = true and no recorded selections: " +
			"blocks of a prefix are selected as decodes select, and loaded from DRAM",
		when: func(s *sim.Spec) bool {
			return s.PrefixCache.Attend == sim.PrefixSelected &&
				(!s.Offload.On || !s.Sparse() || s.Selection.Recording != "")
		}},
	{key: "prefix_cache.attend", with: "prefill.attention",
		reason: "prefill.attention = {prefill.attention} has a selection of its own; use one of both",
		when: func(s *sim.Spec) bool {
			return s.PrefixCache.Attend == sim.PrefixSelected && s.SparsePrefill()
		}},
}

// tiersSet reports whether a prefix cache has capacity below HBM.
func tiersSet(s *sim.Spec) bool { return s.PrefixCache.DRAMGiB+s.PrefixCache.SSDGiB > 0 }

func evictsByScore(s *sim.Spec) bool { return s.Offload.On && s.Offload.Eviction == kv.ByScore }

func ifHot(why func(*sim.Spec) string) func(*sim.Spec) string {
	return func(s *sim.Spec) string {
		if !s.Hot() {
			return ""
		}
		return why(s)
	}
}

// keyOfReason matches a key whose value is inserted into the reason of a rule.
var keyOfReason = regexp.MustCompile(`\{[a-z_.]+\}`)

// refuses returns the rule's error about a system; nil if the rule accepts it.
func (r *rule) refuses(s *sim.Spec) *KeyError {
	reason := ""
	switch {
	case r.why != nil:
		reason = r.why(s)
	case r.when(s):
		reason = keyOfReason.ReplaceAllStringFunc(r.reason, func(key string) string {
			return Show(specField(s, strings.Trim(key, "{}")).Interface())
		})
	}
	if reason == "" {
		return nil
	}
	return &KeyError{Key: r.key, Value: Show(specField(s, r.key).Interface()), Reason: reason,
		With: strings.Fields(r.with)}
}

// checkSpec returns an error if a system is impossible, or nil. Keys of the error are whole names.
func checkSpec(s *sim.Spec) *KeyError {
	for _, e := range specEnums {
		if err := checkName(e.key, specField(s, e.key).String(), e.values); err != nil {
			return err
		}
	}
	if err := checkRanges(s, "system"); err != nil {
		return err
	}
	if err := checkNamed(s); err != nil {
		return err
	}
	for i := range rules {
		if err := rules[i].refuses(s); err != nil {
			return err
		}
	}
	return nil
}

// checkNamed refuses unknown names of drives and mixes, used or not.
func checkNamed(s *sim.Spec) *KeyError {
	if _, err := hw.LoadDrive(s.PrefixCache.Drive); err != nil {
		return &KeyError{Key: "prefix_cache.drive", Value: quote(s.PrefixCache.Drive),
			Reason: err.Error()}
	}
	if s.Prefill.Pattern == "" || slices.Contains(pattern.NamedMixes(), s.Prefill.Pattern) {
		return nil
	}
	if _, err := ReadPatterns(s.Prefill.Pattern); err != nil {
		return &KeyError{Key: "prefill.pattern", Value: quote(s.Prefill.Pattern),
			With: []string{"prefill.attention"}, Reason: err.Error()}
	}
	return nil
}

// checkName refuses a value that is not one of the permitted values of a key.
func checkName(key, got string, values []string) *KeyError {
	if slices.Contains(values, got) {
		return nil
	}
	reason := "unknown; use " + strings.Join(values, ", ") + DidYouMean(got, values)
	if strings.HasPrefix(got, "[") {
		_, name, _ := strings.Cut(key, ".")
		reason = fmt.Sprintf("want one %s; simulate and plan run each of a list", name)
	}
	return &KeyError{Key: key, Value: quote(got), Reason: reason}
}
