package config

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/pattern"
	"github.com/sparseserve/sparseserve/sim/sched"
	"github.com/sparseserve/sparseserve/traces"
)

// A condition is a property that a run must have for a key to have an effect. Fields of the tables
// name their condition in the tag `used`; fields without the tag have an effect in every run.
type condition struct {
	words string // after "needs"
	holds func(*Point, *llm.Model) bool
}

var conditions = map[string]condition{
	"batches": {"an engine whose batches depend on it (list engines)",
		ofSystem(func(s *sim.Spec) bool {
			e, err := hw.LoadEngine(s.Engine)
			return err == nil && len(e.Batch) > 0
		})},
	"sparse": {`sparse attention (selection.on = true)`, ofSystem((*sim.Spec).Sparse)},
	"selects": {`selection.on = true`,
		ofSystem(func(s *sim.Spec) bool { return s.Selection.On })},
	"fixed": {`a selection of a fixed size, as selection.policy = "arkvale"`,
		ofSystem(func(s *sim.Spec) bool { return s.Algorithm().Fixed })},
	"scored": {"scores that decide: offload.on = true, output.recall_proxy = true, or a " +
		"selection " +
		"whose size depends on them (list selections)", scored},
	"drawn": {`no recorded selection.recording`,
		ofSystem(func(s *sim.Spec) bool { return s.Selection.Recording == "" })},
	"psa": {`selection.policy = "psa"`, ofSystem((*sim.Spec).Progressive)},
	"infinigen": {`selection.policy = "infinigen"`,
		ofSystem(func(s *sim.Spec) bool {
			return s.Sparse() && s.Selection.Policy == dsa.InfiniGenName
		})},
	"offload": {"offload.on = true", ofSystem(func(s *sim.Spec) bool { return s.Offload.On })},
	"cache": {"one cache for all requests (offload.on = true, offload.hot_buffer = 0)",
		ofSystem(func(s *sim.Spec) bool { return s.Offload.On && !s.Hot() })},
	"hot": {"hot buffers (offload.hot_buffer above 0)", ofSystem((*sim.Spec).Hot)},
	"controlled": {"a limit by working sets (offload.batch_control = true)",
		ofSystem(func(s *sim.Spec) bool { return s.Offload.BatchControl })},
	"experts": {"a model with experts",
		func(_ *Point, m *llm.Model) bool { return m.IsMixture() }},
	"outputs": {`scheduler sglang (system.scheduler = "sglang")`,
		ofSystem(func(s *sim.Spec) bool { return sched.ReservesOutputs(s.Scheduler) })},
	"prefixes": {`a prefix cache (prefix_cache.mode = "vllm" or "radix")`,
		ofSystem((*sim.Spec).CachesPrefixes)},
	"tiers": {"a prefix cache below HBM (prefix_cache.dram_gib or prefix_cache.ssd_gib above 0)",
		ofSystem((*sim.Spec).PrefixTiers)},
	"ssd": {"a prefix cache on SSD (prefix_cache.ssd_gib above 0)",
		ofSystem(func(s *sim.Spec) bool { return s.PrefixTiers() && s.PrefixCache.SSDGiB > 0 })},
	"selective": {`prefix_cache.write = "selective"`,
		ofSystem(func(s *sim.Spec) bool { return s.PrefixCache.Write == sim.WriteSelective })},
	"dram": {"KV in host memory (offload.on = true, or prefix_cache.dram_gib above 0)",
		ofSystem(func(s *sim.Spec) bool {
			return s.Offload.On || s.PrefixTiers() &&
				s.PrefixCache.DRAMGiB > 0
		})},
	"link_set": {"card.link_h2d or link_d2h, which it bounds; they are the link's speed",
		func(p *Point, _ *llm.Model) bool { return p.Card["link_h2d"]+p.Card["link_d2h"] > 0 }},
	"moves": {"KV that moves over the host link (offload.on = true, or a prefix cache below HBM)",
		ofSystem(func(s *sim.Spec) bool { return s.Offload.On || s.PrefixTiers() })},
	"kernel_copies": {`kernels that copy (offload.load = "flash", offload.save = "gpu", or hot ` +
		"buffers)", ofSystem(func(s *sim.Spec) bool {
		return s.Offload.On && (s.Offload.Load == cost.LoadFlash || s.Offload.Save == cost.SaveGPU ||
			s.Hot())
	})},
	"scatters": {`saves that the host scatters (offload.save = "flash")`,
		ofSystem(func(s *sim.Spec) bool { return s.Offload.On && s.Offload.Save == cost.SaveFlash })},
	"hits": {`hits of prefixes (workload.prefix_hit, or prefix_cache.mode)`,
		func(p *Point, _ *llm.Model) bool {
			return p.Workload.PrefixHit > 0 || p.System.CachesPrefixes()
		}},
	"drafts": {"drafted tokens (speculation.tokens above 0)",
		ofSystem(func(s *sim.Spec) bool { return s.Speculation.Tokens > 0 })},
	"chunks": {`prompts in chunks (prefill.split = "chunked"), or by layers with prefill.max_inject = 0`,
		ofSystem(func(s *sim.Spec) bool {
			return s.Prefill.Split == "chunked" || s.Prefill.MaxInject == 0 && s.Prefill.Split != "plain"
		})},
	"layers": {`prompts by layers (prefill.split = "layer" or "layer-chunked")`,
		ofSystem((*sim.Spec).Segmented)},
	"minference":     prefills(sim.PrefillMInference),
	"a-shape":        prefills(string(pattern.AShape)),
	"vertical-slash": prefills(string(pattern.VerticalSlash)),
	"block-sparse":   prefills(string(pattern.BlockSparse)),
	"sampled": {`a sample of heads (simulation.heads = "sampled")`,
		ofSystem(func(s *sim.Spec) bool { return s.Simulation.Heads == "sampled" })},
	"arkvale": digests(dsa.CuboidMean, "arkvale"),
	"quest":   digests(dsa.MinMax, "quest"),
	"mean":    digests(dsa.Mean, "mean"),
	"infllm":  digests(dsa.Representative, "infllm"),
	"indexer": digests(dsa.Indexed, dsa.IndexerName),
	"weighs": {`selections that weigh the attention (selection.policy = "psa" or "infinigen"), or ` +
		"output.recall_proxy = true", weighs},
	"differ": {`selections that weigh the attention, or selection.per = "query_head"`,
		func(p *Point, m *llm.Model) bool {
			return p.System.Selection.Per == sim.PerQueryHead || weighs(p, m)
		}},
	"groups": {"query heads that share KV heads", func(_ *Point, m *llm.Model) bool {
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
		ofTraits(func(t *traces.Traits) bool { return t.Format == traces.FormatLongBench })},
	"texts": {`texts (workload.trace = "longbench", or a file of texts)`,
		ofTraits(func(t *traces.Traits) bool { return t.Texts })},
	"system_prompts": {"system prompts (sessions.system_prompts above 0)",
		ofLoad(func(w traces.Spec) bool { return w.SystemPrompts > 0 })},

	"replicas": {"several replicas (fleet.replicas above 1)",
		func(p *Point, _ *llm.Model) bool { return p.Fleet.Replicas > 1 }},

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
		func(p *Point, _ *llm.Model) bool { return p.Metrics.Warmup == metrics.CutShare }},
	"drain_share": {`metrics.drain = "share"`,
		func(p *Point, _ *llm.Model) bool { return p.Metrics.Drain == metrics.CutShare }},
}

// contradictions are conditions that a key of [workload] requires, each with a function that names
// the contradicting key.
var contradictions = map[string]func(*traces.Spec) string{"rate": arrivalsOf, "gaps": arrivalsOf,
	"recorded": arrivalsOf, "gamma": arrivalsOf, "closed": arrivalsOf, "thinks": arrivalsOf,
	"lengths": traceOf, "sessions": traceOf}

func traceOf(w *traces.Spec) string { return fmt.Sprintf("workload.trace = %q", w.Trace) }

func ofSystem(holds func(*sim.Spec) bool) func(*Point, *llm.Model) bool {
	return func(p *Point, _ *llm.Model) bool { return holds(&p.System) }
}

func ofLoad(holds func(traces.Spec) bool) func(*Point, *llm.Model) bool {
	return func(p *Point, _ *llm.Model) bool { return holds(p.Workload) }
}

// ofTraits holds for no file that cannot be read; that is another error.
func ofTraits(holds func(*traces.Traits) bool) func(*Point, *llm.Model) bool {
	return ofLoad(func(w traces.Spec) bool {
		has, err := w.Traits()
		return err == nil && holds(&has)
	})
}

func ofSLO(holds func(*SLO) bool) func(*Point, *llm.Model) bool {
	return func(p *Point, _ *llm.Model) bool { return holds(&p.SLO) }
}

func prefills(kind string) condition {
	return condition{fmt.Sprintf("prefill.attention = %q", kind),
		ofSystem(func(s *sim.Spec) bool { return s.Prefill.Attention == kind })}
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

// arrivalsOf names the setting that decides how requests arrive.
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
	return condition{fmt.Sprintf("selection.policy = %q or another of its scores (list selections)",
		selection), ofSystem(func(s *sim.Spec) bool { return s.Algorithm().Digest == digest })}
}

// scored reports whether the choice of selected blocks affects a run. For blocks in HBM only their
// number affects the time.
func scored(p *Point, _ *llm.Model) bool {
	return p.System.Offload.On || p.Output.RecallProxy || !p.System.Algorithm().Fixed ||
		p.System.Selection.Per == sim.PerQueryHead
}

func weighs(p *Point, _ *llm.Model) bool {
	a := p.System.Algorithm()
	return p.Output.RecallProxy || a.Name != "" && a.Make(&dsa.Options{}).Weighs() ||
		p.System.Offload.Eviction == kv.ByScore
}
