package config

import (
	"slices"

	"github.com/sparseserve/sparseserve/traces"
)

// The built-in experiments that simulate runs, the default one first, are fitted to
// one model on the built-in mix: their output scale, limit of prompts and rates mean
// nothing for another. Where a configuration over them brings its own trace or model
// and leaves such a key unset, the key is neutral instead:
//
//	a model, card or trace, an axis of models or cards, an engine
//	             system.engine and what an engine sets: the preset's (engine.go)
//	a model, or an axis of models
//	             workload.output_scale = 1
//	             prefill.max_prompt_tokens = 0, the model's own maximum
//	a trace, synthetic lengths
//	             the same, and of a file
//	             workload.requests = 0, all of it
//	             workload.datasets, all of LongBench's
//	             workload.arrivals = "trace" where it has times and no rate is set
//
// Rates are fitted to the card too. With another model, card or trace they are chosen from what the
// systems sustain, where nothing names them (capacity.ChooseRates).

// neutral puts neutral values in the place of fitted ones.
func (l *loader) neutral() error {
	own := l.cfg.Workload.Trace != traces.BuiltIn
	l.pinEngine(own)
	if own || l.models || l.gpus || l.cfg.Model != l.fitted || l.cfg.GPU != l.onGPU {
		l.cfg.Own = true
		defer l.noRates()
	}
	if !own && l.cfg.Model == l.fitted && !l.models {
		return nil
	}
	w := &l.cfg.Workload
	if !l.chosen("workload.output_scale") {
		w.OutputScale = 1
	}
	if !l.chosen("prefill.max_prompt_tokens") {
		l.drop(func(g *given) bool { return g.key == "prefill.max_prompt_tokens" })
	}
	if !own {
		return nil
	}
	if !l.chosen("workload.requests") && w.FromFile() {
		w.Requests = 0
	}
	if !l.chosen("workload.datasets") {
		w.Datasets = traces.AllSets()
	}
	return l.ownArrivals()
}

// noRates says that the rates are to be chosen, where requests arrive at a rate that nothing names.
func (l *loader) noRates() {
	if l.cfg.Workload.HasRate() && !l.chosen("workload.rate") {
		l.cfg.NoRates, l.cfg.NoRequests = true, !l.chosen("workload.requests")
	}
}

// ownBounds drops the built-in bounds of the service level where the configuration names a bound
// of its own.
func (l *loader) ownBounds() {
	s := &l.cfg.SLO
	bounds := []struct {
		limit *float64
		keys  []string
	}{
		{&s.TTFTS, []string{"ttft_s"}},
		{&s.TBTFactor, []string{"tbt_factor", "tbt_s"}},
		{&s.TPOTS, []string{"tpot_s"}},
		{&s.E2ES, []string{"e2e_s"}},
		{&s.DelayS, []string{"delay_s"}},
	}
	chosen := func(keys []string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return l.chosen("slo." + key) })
	}
	own := false
	for _, b := range bounds {
		own = own || chosen(b.keys)
	}
	for _, b := range bounds {
		if own && !chosen(b.keys) {
			*b.limit = 0
		}
	}
}
