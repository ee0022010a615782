package config

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/pattern"
	"github.com/sparseserve/sparseserve/traces"
)

// A condition is what a run must have for a key to have an effect in it. Fields of the tables name
// theirs in the tag `used`; those without one have an effect in every run.
type condition struct {
	words string // after "needs"
	holds func(*Point, *hw.Model) bool
}

var conditions = map[string]condition{
	"batches": {"an engine whose batches depend on it (list engines)",
		ofSystem(func(s *sim.Spec) bool {
			e, err := hw.LoadEngine(s.Engine)
			return err == nil && len(e.Batch) > 0
		})},
	"sparse": {`sparse attention (system.attention = "sparse")`, ofSystem((*sim.Spec).Sparse)},
	"selects": {`system.attention = "sparse"`,
		ofSystem(func(s *sim.Spec) bool { return s.Attention == "sparse" })},
	"fixed": {`a selection of a fixed size, as system.selection = "arkvale"`,
		ofSystem(func(s *sim.Spec) bool { return algorithm(s).Fixed })},
	"scored": {"scores that decide: system.offload = true, output.recall_proxy = true, or a " +
		"selection " +
		"whose size depends on them (list selections)", scored},
	"drawn": {`no recorded system.selections`,
		ofSystem(func(s *sim.Spec) bool { return s.Selections == "" })},
	"psa": {`system.selection = "psa"`, ofSystem((*sim.Spec).Progressive)},
	"infinigen": {`system.selection = "infinigen"`,
		ofSystem(func(s *sim.Spec) bool { return s.Sparse() && s.Selection == "infinigen" })},
	"offload": {"system.offload = true", ofSystem(func(s *sim.Spec) bool { return s.Offload })},
	"cache": {"one cache for all requests (system.offload = true, system.hot_buffer = 0)",
		ofSystem(func(s *sim.Spec) bool { return s.Offload && !s.Hot() })},
	"hot": {"hot buffers (system.hot_buffer above 0)", ofSystem((*sim.Spec).Hot)},
	"controlled": {"a limit by working sets (system.batch_control = true)",
		ofSystem(func(s *sim.Spec) bool { return s.BatchControl })},
	"experts": {"a model with experts",
		func(_ *Point, m *hw.Model) bool { return m.IsMixture() }},
	"prefixes": {`a prefix cache (system.prefix_cache = "vllm" or "radix")`,
		ofSystem((*sim.Spec).CachesPrefixes)},
	"tiers": {"a prefix cache below HBM (system.prefix_dram_gib or prefix_ssd_gib above 0)",
		ofSystem((*sim.Spec).PrefixTiers)},
	"ssd": {"a prefix cache on SSD (system.prefix_ssd_gib above 0)",
		ofSystem(func(s *sim.Spec) bool { return s.PrefixTiers() && s.PrefixSSD > 0 })},
	"selective": {`system.prefix_write = "selective"`,
		ofSystem(func(s *sim.Spec) bool { return s.PrefixWrite == sim.WriteSelective })},
	"dram": {"KV in host memory (system.offload = true, or system.prefix_dram_gib above 0)",
		ofSystem(func(s *sim.Spec) bool { return s.Offload || s.PrefixTiers() && s.PrefixDRAM > 0 })},
	"link_set": {"card.link_h2d or link_d2h, which it bounds; they are the link's speed",
		func(p *Point, _ *hw.Model) bool { return p.Card["link_h2d"]+p.Card["link_d2h"] > 0 }},
	"moves": {"KV that moves over the host link (system.offload = true, or a prefix cache below HBM)",
		ofSystem(func(s *sim.Spec) bool { return s.Offload || s.PrefixTiers() })},
	"kernel_copies": {`kernels that copy (system.load_engine = "flash", save_engine = "gpu", or hot ` +
		"buffers)", ofSystem(func(s *sim.Spec) bool {
		return s.Offload && (s.LoadEngine == hw.LoadFlash || s.SaveEngine == hw.SaveGPU || s.Hot())
	})},
	"scatters": {`saves that the host scatters (system.save_engine = "flash")`,
		ofSystem(func(s *sim.Spec) bool { return s.Offload && s.SaveEngine == hw.SaveFlash })},
	"hits": {`hits of prefixes (workload.prefix_hit, or system.prefix_cache)`,
		func(p *Point, _ *hw.Model) bool {
			return p.Workload.PrefixHit > 0 || p.System.CachesPrefixes()
		}},
	"drafts": {"drafted tokens (system.speculate_tokens above 0)",
		ofSystem(func(s *sim.Spec) bool { return s.SpeculateTokens > 0 })},
	"chunks": {`prompts in chunks (system.prefill = "chunked"), or by layers with system.max_inject = 0`,
		ofSystem(func(s *sim.Spec) bool {
			return s.Prefill == "chunked" || s.MaxInject == 0 && s.Prefill != "plain"
		})},
	"layers": {`prompts by layers (system.prefill = "layer" or "layer-chunked")`,
		ofSystem(func(s *sim.Spec) bool { return s.Prefill == "layer" || s.Prefill == "layer-chunked" })},
	"minference":     prefills(sim.PrefillMInference),
	"a-shape":        prefills(string(pattern.AShape)),
	"vertical-slash": prefills(string(pattern.VerticalSlash)),
	"block-sparse":   prefills(string(pattern.BlockSparse)),
	"sampled": {`a sample of heads (system.heads = "sampled")`,
		ofSystem(func(s *sim.Spec) bool { return s.Heads == "sampled" })},
	"arkvale": digests(dsa.CuboidMean, "arkvale"),
	"quest":   digests(dsa.MinMax, "quest"),
	"mean":    digests(dsa.Mean, "mean"),
	"infllm":  digests(dsa.Representative, "infllm"),
	"indexer": digests(dsa.Indexed, dsa.IndexerName),
	"weighs": {`selections that weigh the attention (system.selection = "psa" or "infinigen"), or ` +
		"output.recall_proxy = true", weighs},
	"differ": {`selections that weigh the attention, or system.select_per = "query_head"`,
		func(p *Point, m *hw.Model) bool {
			return p.System.SelectPer == sim.PerQueryHead || weighs(p, m)
		}},
	"groups": {"query heads that share KV heads", func(_ *Point, m *hw.Model) bool {
		return m.QHeads > m.KVHeads && !m.IsLatent()
	}},

	"rate": drawn(traces.Spec.HasRate),
	"gaps": drawn(func(w traces.Spec) bool {
		return !arrives(w, closed) && !arrives(w, recorded)
	}),
	"recorded": arrivals(recorded),
	"gamma":    arrivals(traces.ArrivalsGamma),
	"closed":   arrivals(closed),
	"thinks": {"arrivals closed", ofLoad(func(w traces.Spec) bool {
		return arrives(w, closed) || w.Trace == traces.Sessions || w.FromFile() && !arrives(w, recorded)
	})},
	"lengths":  ofTraces("traces synthetic and sessions", traces.Synthetic, traces.Sessions),
	"sessions": ofTraces("trace sessions", traces.Sessions),

	"file": {"a file as workload.trace", ofLoad(traces.Spec.FromFile)},
	"longbench": {`lengths of LongBench (workload.trace = "longbench", or a file of its format)`,
		ofLoad(func(w traces.Spec) bool { return w.IsOf(traces.FormatLongBench) })},
	"texts": {`texts (workload.trace = "longbench", or a file of its or ShareGPT's format)`,
		ofLoad(func(w traces.Spec) bool {
			return w.IsOf(traces.FormatLongBench, traces.FormatShareGPT)
		})},
	"system_prompts": {"system prompts (workload.system_prompts above 0)",
		ofLoad(func(w traces.Spec) bool { return w.SystemPrompts > 0 })},

	"replicas": {"several replicas (fleet.replicas above 1)",
		func(p *Point, _ *hw.Model) bool { return p.Fleet.Replicas > 1 }},

	"statistics": {`slo.rule = "statistics"`,
		ofSLO(func(s *SLO) bool { return s.Rule != SLORequests })},
	"ttft": {"a bound (slo.ttft_s above 0)", ofSLO(func(s *SLO) bool { return s.TTFTS > 0 })},
	"tbt": {"a bound (slo.tbt_s or tbt_factor above 0)",
		ofSLO(func(s *SLO) bool { return s.TBTS+s.TBTFactor > 0 })},
	"no_tbt": {"slo.tbt_s = 0", ofSLO(func(s *SLO) bool { return s.TBTS == 0 })},
	"tpot":   {"a bound (slo.tpot_s above 0)", ofSLO(func(s *SLO) bool { return s.TPOTS > 0 })},
	"e2e":    {"a bound (slo.e2e_s above 0)", ofSLO(func(s *SLO) bool { return s.E2ES > 0 })},
	"delay":  {"a bound (slo.delay_s above 0)", ofSLO(func(s *SLO) bool { return s.DelayS > 0 })},

	"warmup_share": {`metrics.warmup = "share"`,
		func(p *Point, _ *hw.Model) bool { return p.Metrics.Warmup == sim.CutShare }},
	"drain_share": {`metrics.drain = "share"`,
		func(p *Point, _ *hw.Model) bool { return p.Metrics.Drain == sim.CutShare }},
}

// contradictions are conditions of which a key of [workload] is refused where they do not hold,
// each with the key that it cannot stand with.
var contradictions = map[string]func(*traces.Spec) string{"rate": arrivalsOf, "gaps": arrivalsOf,
	"recorded": arrivalsOf, "gamma": arrivalsOf, "closed": arrivalsOf, "thinks": arrivalsOf,
	"lengths": traceOf, "sessions": traceOf}

func traceOf(w *traces.Spec) string { return fmt.Sprintf("workload.trace = %q", w.Trace) }

func ofSystem(holds func(*sim.Spec) bool) func(*Point, *hw.Model) bool {
	return func(p *Point, _ *hw.Model) bool { return holds(&p.System) }
}

func ofLoad(holds func(traces.Spec) bool) func(*Point, *hw.Model) bool {
	return func(p *Point, _ *hw.Model) bool { return holds(p.Workload) }
}

func ofSLO(holds func(*SLO) bool) func(*Point, *hw.Model) bool {
	return func(p *Point, _ *hw.Model) bool { return holds(&p.SLO) }
}

func prefills(kind string) condition {
	return condition{fmt.Sprintf("system.prefill_attention = %q", kind),
		ofSystem(func(s *sim.Spec) bool { return s.PrefillAttention == kind })}
}

const closed, recorded = traces.ArrivalsClosed, traces.ArrivalsTrace

func arrives(w traces.Spec, how string) bool { return w.Arrivals == how }

func arrivals(how string) condition {
	return condition{"arrivals " + how,
		ofLoad(func(w traces.Spec) bool { return arrives(w, how) })}
}

func drawn(holds func(traces.Spec) bool) condition {
	return condition{"arrivals poisson, gamma and fixed", ofLoad(holds)}
}

// arrivalsOf says what decides how requests arrive.
func arrivalsOf(w *traces.Spec) string {
	if len(w.Stages) > 0 && !arrives(*w, closed) && !arrives(*w, recorded) {
		return "workload.stages, which have rates of their own"
	}
	return fmt.Sprintf("workload.arrivals = %q", w.Arrivals)
}

func ofTraces(words string, names ...string) condition {
	return condition{words,
		ofLoad(func(w traces.Spec) bool { return slices.Contains(names, w.Trace) })}
}

func digests(digest dsa.Digest, selection string) condition {
	return condition{fmt.Sprintf("system.selection = %q or another of its scores (list selections)",
		selection), ofSystem(func(s *sim.Spec) bool { return algorithm(s).Digest == digest })}
}

// algorithm is the selection of a system; one of nothing where there is none.
func algorithm(s *sim.Spec) *dsa.Algorithm {
	if a, err := dsa.AlgorithmNamed(s.Selection); err == nil {
		return a
	}
	return &dsa.Algorithm{}
}

// scored says whether it matters to a run which blocks are selected: what is in HBM takes the same
// time whichever they are, if they are as many.
func scored(p *Point, _ *hw.Model) bool {
	return p.System.Offload || p.Output.RecallProxy || !algorithm(&p.System).Fixed ||
		p.System.SelectPer == sim.PerQueryHead
}

func weighs(p *Point, _ *hw.Model) bool {
	a := algorithm(&p.System)
	return p.Output.RecallProxy || a.Name != "" && a.Make(&dsa.Options{}).Weighs() ||
		p.System.Eviction == kv.ByScore
}
