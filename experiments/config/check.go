package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/internal/units"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/fleet"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/pattern"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// SamplingTopP is the value of system.sampling that sorts logits.
const SamplingTopP = "top-p"

// names lists the permitted names of keys that are a choice of names: of the tag `values`, and of
// other packages. The workload checks its own (traces.Spec.Validate).
var names = func() map[string][]string {
	all := map[string][]string{
		"system.use":            hw.Uses(),
		"system.scheduler":      sched.BaseNames(),
		"selection.policy":      dsa.Names(),
		"offload.load":          cost.LoadEngines(),
		"offload.save":          cost.SaveEngines(),
		"offload.eviction":      kv.EvictionNames(),
		"offload.hot_release":   sim.HotReleases(),
		"prefill.attention":     PrefillAttentions(),
		"prefix_cache.mode":     sim.PrefixCaches(),
		"prefix_cache.eviction": memory.Evictions(),
		"prefix_cache.write":    sim.PrefixWrites(),
		"prefix_cache.load":     sim.PrefixLoads(),
		"prefix_cache.overlap":  sim.PrefixOverlaps(),
		"metrics.warmup":        metrics.CutRules,
		"metrics.drain":         metrics.CutRules,
		"fleet.router":          fleet.RouterNames(),
	}
	for _, b := range bounded {
		all["slo."+b.name+"_stat"] = metrics.StatNames
	}
	for _, f := range FieldsOf(new(Point)) {
		if values := strings.Fields(f.Tag.Get("values")); len(values) > 0 && !OfLoad(f.Key) {
			all[f.Key] = values
		}
	}
	return all
}()

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

// rule refuses configurations in which a key has a value that its conditions exclude.
type rule struct {
	key  string
	with string // keys that it cannot stand with
	when func(*Point, *llm.Model) bool
	// reason is the text of the error. It may name values of other keys ({offload.on}), {system},
	// {model}, the model's {index_top_k}, and {class KEYS}, which lists its features among the keys.
	reason string
	// why, if set, replaces both: it returns the reason against the value, or "".
	why func(*Point, *llm.Model) string
}

// systemRules are checked in this order. The first that refuses holds.
var systemRules = slices.Concat(selectionRules, offloadRules, speculationRules, prefillRules,
	prefixCacheRules, tierRules, []rule{
		{key: "system.dram_gib", reason: "must be above 0 with offload",
			when: ofSystem(func(s *sim.Spec) bool { return s.Offload.On && s.DRAMGiB == 0 })}})

var cutoffRules = []rule{
	{key: "metrics.drain_share",
		reason: "leaves nothing with metrics.warmup_share = {metrics.warmup_share}; their sum must be " +
			"below 1",
		when: func(p *Point, _ *llm.Model) bool {
			c := &p.Metrics
			return c.Warmup == metrics.CutShare && c.Drain == metrics.CutShare &&
				c.WarmupShare+c.DrainShare >= 1
		}},
}

var selectionRules = []rule{
	{key: "selection.budget_tokens", reason: "is below one block of {system.block_tokens} tokens",
		when: ofSystem(func(s *sim.Spec) bool {
			return s.Sparse() && s.Selection.BudgetTokens < s.BlockTokens
		})},
	{key: "selection.recent_blocks",
		reason: "must be at least 1: the open block has no metadata to select it by",
		when:   ofSystem(func(s *sim.Spec) bool { return s.Sparse() && s.Selection.RecentBlocks < 1 })},
	{key: "selection.sink_blocks",
		with: "selection.recent_blocks selection.budget_tokens system.block_tokens",
		reason: "with selection.recent_blocks = {selection.recent_blocks} leaves nothing of " +
			"selection.budget_tokens = {selection.budget_tokens} in blocks of {system.block_tokens}",
		when: ofSystem(func(s *sim.Spec) bool {
			fixed := s.Selection.SinkBlocks + s.Selection.RecentBlocks
			return s.Sparse() && fixed >= s.Selection.BudgetTokens/s.BlockTokens
		})},
	{key: "system.block_tokens", with: "selection.policy",
		reason: "must be 1: infinigen selects tokens",
		when: ofSystem(func(s *sim.Spec) bool {
			return s.Sparse() && s.Algorithm().Tokens && s.BlockTokens != 1
		})},
}

var offloadRules = []rule{
	{key: "offload.eviction",
		reason: "needs scores of the blocks, which neither full attention nor recorded selections have",
		when: ofSystem(func(s *sim.Spec) bool {
			return evictsByScore(s) && (!s.Sparse() || s.Selection.Recording != "")
		})},
	{key: "offload.eviction", with: "selection.per",
		reason: `goes by the score that a KV head gives a block, and selection.per = "query_head" has ` +
			"one a query head; use another of both",
		when: ofSystem(func(s *sim.Spec) bool {
			return evictsByScore(s) && s.Selection.Per == sim.PerQueryHead
		})},
	{key: "offload.lookup",
		reason: `needs selection.on = true and offload.load = "flash": what the GPU finds missing ` +
			"only a kernel can load without asking the host",
		when: ofSystem(func(s *sim.Spec) bool {
			return s.GPULookup() && (!s.Sparse() || s.Offload.Load != "flash")
		})},
	{key: "offload.hot_buffer", why: bySystem(noHot),
		with: "selection.budget_tokens prefill.split selection.policy selection.dense_layers " +
			"offload.batch_control prefix_cache.attend"},
	{key: "offload.load", with: "offload.hot_buffer",
		reason: "swap is the kernel of hot buffers, and theirs alone: offload.hot_buffer = " +
			"{offload.hot_buffer}",
		when: ofSystem(func(s *sim.Spec) bool {
			return s.Hot() != (s.Offload.On && s.Offload.Load == cost.LoadSwap)
		})},
	{key: "offload.hot_buffer", with: "offload.hot_release offload.host_pool_ratio",
		reason: "hot_release and host_pool_ratio need a hot buffer; set it, as to 4096",
		when: ofSystem(func(s *sim.Spec) bool {
			return !s.Hot() &&
				(s.Offload.HotRelease == sim.ReleaseShort || s.Offload.HostPoolRatio > 0)
		})},
}

var speculationRules = []rule{
	{key: "speculation.tokens", why: bySystem((*sim.Spec).NoSpeculation),
		with: "selection.policy offload.on prefill.split system.max_tokens"},
	{key: "speculation.acceptance", with: "speculation.tokens",
		reason: "needs drafted tokens; set speculation.tokens too, as to 1",
		when: ofSystem(func(s *sim.Spec) bool {
			return s.Speculation.Tokens == 0 && s.Speculation.Acceptance > 0
		})},
}

var prefillRules = []rule{
	{key: "prefill.pattern", with: "prefill.attention", why: bySystem(func(s *sim.Spec) string {
		if s.Prefill.Pattern == "" || slices.Contains(pattern.NamedMixes(), s.Prefill.Pattern) {
			return ""
		}
		_, err := ReadPatterns(s.Prefill.Pattern)
		return reasonOf(err)
	})},
	{key: "prefill.pattern", with: "prefill.attention",
		reason: "minference needs a file of patterns, or a published mix: " +
			strings.Join(pattern.NamedMixes(), ", "),
		when: ofSystem(func(s *sim.Spec) bool {
			return s.Prefill.Pattern == "" && s.Prefill.Attention == sim.PrefillMInference
		})},
}

var prefixCacheRules = []rule{
	{key: "prefix_cache.mode", with: "offload.on prefill.split", why: bySystem(noPrefixCache)},
	{key: "prefix_cache.drive", why: bySystem(func(s *sim.Spec) string {
		_, err := hw.LoadDrive(s.PrefixCache.Drive)
		return reasonOf(err)
	})},
	{key: "prefix_cache.attend",
		reason: "needs offload.on = true, selection.on = true and no recorded selections: " +
			"blocks of a prefix are selected as decodes select, and loaded from DRAM",
		when: ofSystem(func(s *sim.Spec) bool {
			return s.PrefixCache.Attend == sim.PrefixSelected &&
				(!s.Offload.On || !s.Sparse() || s.Selection.Recording != "")
		})},
	{key: "prefix_cache.attend", with: "prefill.attention",
		reason: "prefill.attention = {prefill.attention} has a selection of its own; use one of both",
		when: ofSystem(func(s *sim.Spec) bool {
			return s.PrefixCache.Attend == sim.PrefixSelected && s.SparsePrefill()
		})},
}

// tiersSet reports whether a prefix cache has capacity below HBM.
func tiersSet(s *sim.Spec) bool { return s.PrefixCache.DRAMGiB+s.PrefixCache.SSDGiB > 0 }

func evictsByScore(s *sim.Spec) bool { return s.Offload.On && s.Offload.Eviction == kv.ByScore }

func noPrefixCache(s *sim.Spec) string {
	if !s.CachesPrefixes() || s.Offload.On && tiersSet(s) {
		return ""
	}
	return s.NoPrefixCache()
}

func noHot(s *sim.Spec) string {
	if !s.Hot() {
		return ""
	}
	return s.NoHot()
}

func bySystem(why func(*sim.Spec) string) func(*Point, *llm.Model) string {
	return func(p *Point, _ *llm.Model) string { return why(&p.System) }
}

// reasonOf is the text of an error; "" of none.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// valueOfReason matches a value that is inserted into the reason of a rule.
var valueOfReason = regexp.MustCompile(`\{[a-z_. ]+\}`)

// refusal returns the error of the first rule that refuses a point and its model; nil if none does.
func refusal(rules []rule, p *Point, m *llm.Model) *KeyError {
	for i := range rules {
		r := &rules[i]
		if reason := r.against(p, m); reason != "" {
			return &KeyError{Key: r.key, Value: shown(p, r.key), Reason: reason,
				With: strings.Fields(r.with)}
		}
	}
	return nil
}

// against returns the rule's reason against a point; "" if it has none.
func (r *rule) against(p *Point, m *llm.Model) string {
	switch {
	case r.why != nil:
		return r.why(p, m)
	case !r.when(p, m):
		return ""
	}
	return valueOfReason.ReplaceAllStringFunc(r.reason, func(word string) string {
		key := strings.Trim(word, "{}")
		of, ofClass := strings.CutPrefix(key, "class ")
		switch {
		case key == "system":
			return p.System.Name
		case key == "model":
			return m.Name
		case key == "index_top_k":
			return Show(m.IndexTopK)
		case ofClass:
			return m.Class(strings.Fields(of)...)
		}
		return shown(p, key)
	})
}

// shown returns the value of a point's key as a file has it.
func shown(p *Point, key string) string {
	v, ok := p.Field(key)
	if !ok {
		panic("no key " + key)
	}
	return Show(v.Interface())
}

// checkSystem returns an error if the system of a point is impossible, or nil.
func checkSystem(p *Point) *KeyError {
	if err := checkTable(&p.System, "system"); err != nil {
		return err
	}
	return refusal(systemRules, p, nil)
}

// checkTable returns an error for the first key of a table's struct, which v points to, that has no
// permitted name, is out of its range or is not finite; nil if there is none.
func checkTable(v any, table string) *KeyError {
	for _, f := range FieldsOf(v) {
		key, why := wholeKey(table, f.Key), ""
		if values, named := names[key]; named {
			if err := checkName(key, f.Value.String(), values); err != nil {
				return err
			}
		}
		if f.Value.CanInt() || f.Value.CanFloat() {
			x := f.Value.Convert(reflect.TypeFor[float64]()).Float()
			why = units.Outside(units.Bounds(f.Tag.Get("range")), x)
			if math.IsNaN(x) || math.IsInf(x, 0) {
				why = "must be a finite number"
			}
		}
		if why != "" {
			return &KeyError{Key: key, Value: Show(f.Value.Interface()), Reason: why}
		}
	}
	return nil
}

// checkName refuses a value that is not one of the permitted values of a key.
func checkName(key, got string, values []string) *KeyError {
	if slices.Contains(values, got) {
		return nil
	}
	reason := "unknown; use " + strings.Join(values, ", ") + nearest.Meant(got, values)
	if strings.HasPrefix(got, "[") {
		_, name, _ := strings.Cut(key, ".")
		reason = fmt.Sprintf("want one %s; simulate and plan run each of a list", name)
	}
	return &KeyError{Key: key, Value: quote(got), Reason: reason}
}
