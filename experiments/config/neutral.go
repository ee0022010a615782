package config

import (
	"github.com/sparseserve/sparseserve/traces"
)

// The built-in experiments that simulate runs, including the default one, are fitted to one model
// on the built-in mix: their output scale, prompt limit and rates are meaningless for another
// model. If a configuration brings its own trace or model and leaves such a key unset, the key
// becomes neutral:
//
//	a model, card or trace, an axis of models or cards, an engine
//	             system.engine and the keys that it sets: from the preset (engine.go)
//	a model, or an axis of models
//	             workload.output_scale = 1
//	             prefill.max_prompt_tokens = 0, the model's own maximum
//	a trace, synthetic lengths
//	             the same, and for a file
//	             workload.requests = 0, all requests
//	             longbench.datasets, all of LongBench's
//	             workload.arrivals = "trace" if it has times and no rate is set
//
// Rates are also fitted to the card. With another model, card or trace, unset rates are chosen from
// the sustained rates of the systems (capacity.ChooseRates).

// neutral replaces fitted values with neutral ones.
func (l *loader) neutral() error {
	own := l.cfg.Workload.Trace != traces.BuiltIn
	l.pinEngine(own)
	if own || l.models || l.gpus || l.cfg.Model != l.fitted || l.cfg.GPU != l.onGPU {
		l.own = true
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
		l.drop(func(g Setting) bool { return g.Key == "prefill.max_prompt_tokens" })
	}
	if !own {
		return nil
	}
	if !l.chosen("workload.requests") && w.FromFile() {
		w.Requests = 0
	}
	if !l.chosen("longbench.datasets") {
		w.Datasets = traces.AllSets()
	}
	return l.ownArrivals()
}

// noRates marks the rates as to be chosen if requests arrive at a rate that no setting names.
func (l *loader) noRates() {
	if l.cfg.Workload.HasRate() && !l.chosen("workload.rate") {
		l.cfg.NoRate, l.cfg.NoRequests = true, !l.chosen("workload.requests")
	}
}

// ownBounds drops the built-in bounds of the service level where the configuration names a bound
// of its own.
func (l *loader) ownBounds() {
	own := map[string]bool{}
	for _, b := range bounded {
		if l.chosen("slo."+b.name+"_s") || b.name == "tbt" && l.chosen("slo.tbt_factor") {
			own[b.name] = true
		}
	}
	s := &l.cfg.SLO
	for _, b := range bounded {
		if limit, _ := s.bound(b.name); len(own) > 0 && !own[b.name] {
			*limit = 0
		}
	}
	if len(own) > 0 && !own["tbt"] {
		s.TBTFactor = 0
	}
}
