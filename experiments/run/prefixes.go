package run

import (
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces"
)

// belowHBM prepares the tiers of the prefix cache below HBM.
func (s *prepared) belowHBM() (err error) {
	spec := &s.point.System
	if !spec.PrefixTiers() {
		return nil
	}
	if spec.PrefixCache.Eviction == memory.Belady {
		if err := s.foresee(); err != nil {
			return err
		}
	}
	token := s.server.Geometry.TokenBytes()
	if s.prefix, err = config.PrefixOptions(spec, token); err != nil {
		return err
	}
	s.prices = cost.NewPrefixPrices(s.gpu, &s.model, s.prefix, spec.Prefill.ChunkTokens)
	s.server.PrefixWorth = func(from, to, ssd int) bool {
		l := sim.PrefixLoad{Bytes: int64(to-from) * token, SSD: int64(ssd) * token}
		return s.prices.Load(l) < s.prices.Compute(from, to)
	}
	return nil
}

// foresee makes the server read the workload ahead of the run, for Belady's optimum.
func (s *prepared) foresee() error {
	refuse := func(why string) error {
		return &config.KeyError{Key: "prefix_cache.eviction", Value: config.Show(memory.Belady),
			Reason: why + ": use lru, fifo, clock, sieve"}
	}
	switch {
	case s.point.Fleet.On():
		return refuse("needs to know which requests come, and a fleet's router decides as it runs")
	case s.stream.HasTurns() || s.stream.Concurrency() > 0:
		return refuse("needs to know which requests come in which order, and here a request comes " +
			"when another ends")
	}
	p := s.point
	s.server.Future = traces.Requests(p.Workload, p.Seed, traces.Tokenizer(s.model.Counter()))
	return nil
}

func (s *prepared) newDevice() (*cost.Device, error) {
	opts := DeviceOptions(&s.point.System)
	opts.Prefix = s.prefix
	return cost.NewDevice(s.gpu, &s.model, opts)
}

// crossovers reports the prefix length from which loading is faster than computing.
func (s *prepared) crossovers() (notes []warn.Warning) {
	spec := &s.point.System
	if !spec.PrefixTiers() || !s.model.Plain() && spec.PrefixCache.Load != sim.LoadCheaper {
		return nil
	}
	for _, t := range []struct {
		name string
		gib  float64
		ssd  bool
	}{{"DRAM", spec.PrefixCache.DRAMGiB, false}, {"SSD", spec.PrefixCache.SSDGiB, true}} {
		if t.gib == 0 {
			continue
		}
		n := s.prices.Crossover(spec.PrefixCache.Chunk, s.prefix.Chunk, t.ssd,
			s.model.MaxContext/spec.PrefixCache.Chunk)
		if n > 0 {
			notes = append(notes, warn.New(warn.PrefixLoad,
				"prefixes of %d tokens and more are loaded from %s in less "+
					"time than the GPU computes them (prefix_cache.load = \"cheaper\" goes by it)",
				n*spec.PrefixCache.Chunk, t.name).About(t.name))
		} else {
			notes = append(notes, warn.New(warn.PrefixLoad,
				"no prefix is loaded from %s in less time than the GPU "+
					"computes it, up to the model's %d tokens (prefix_cache.load = \"cheaper\" goes by it)",
				t.name,
				s.model.MaxContext).About(t.name))
		}
	}
	return notes
}

// uncached warns if prompts declare shared prefixes and no prefix cache uses them.
func (s *prepared) uncached() []warn.Warning {
	if !s.stream.Content() || s.point.System.CachesPrefixes() {
		return nil
	}
	return []warn.Warning{warn.New(warn.Uncached, "the trace identifies shared prompt content and "+
		"prefix_cache.mode is off: every prompt is prefilled whole, while vLLM V1 (\"vllm\") and "+
		"SGLang (\"radix\") have a cache on by default")}
}

// rebuiltIndex warns if sparse prefill spends more time on building indices than on attention: each
// chunk builds an index over all tokens before it.
func (s *prepared) rebuiltIndex(sum *metrics.Summary) []warn.Warning {
	spec := &s.point.System
	index := sum.PhaseS["prefill_index"]
	if spec.Prefill.Split != "chunked" || index <= sum.PhaseS["prefill_attention"] {
		return nil
	}
	return []warn.Warning{warn.New(warn.Index,
		"sparse prefill spends %.0f s on indices and %.0f s on attention: "+
			"each chunk builds an index over all tokens before it, so chunks of %d tokens can be slower "+
			"than dense prefill; raise prefill.chunk_tokens and system.max_tokens", index,
		sum.PhaseS["prefill_attention"], spec.Prefill.ChunkTokens)}
}
