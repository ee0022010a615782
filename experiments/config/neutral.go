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
//	             system.max_prompt_tokens = 0, the model's own maximum
//	a trace, synthetic lengths
//	             the same, and of a file
//	             workload.requests = 0, all of it
//	             workload.datasets, all of LongBench's
//	             workload.arrivals = "trace" where it has times and no rate is set

// neutral puts neutral values in the place of fitted ones.
func (l *loader) neutral() error {
	own := l.cfg.Workload.Trace != traces.BuiltIn
	l.pinEngine(own)
	if !own && l.cfg.Model == l.fitted && !l.models {
		return nil
	}
	w := &l.cfg.Workload
	if !l.chosen["workload.output_scale"] {
		w.OutputScale = 1
	}
	if !l.chosen["system.max_prompt_tokens"] {
		delete(l.common, "max_prompt_tokens")
	}
	if !own {
		return nil
	}
	if !l.chosen["workload.requests"] && w.FromFile() {
		w.Requests = 0
	}
	if !l.chosen["workload.datasets"] {
		w.Datasets = traces.AllSets()
	}
	return l.ownArrivals()
}

// ownBounds drops the built-in bounds of the service level where the configuration names a bound
// of its own. It returns an error for a statistic that bounds nothing.
func (l *loader) ownBounds() *KeyError {
	s := &l.cfg.SLO
	bounds := []struct {
		limit *float64
		stat  string
		keys  []string
	}{
		{&s.TTFTS, "ttft_stat", []string{"ttft_s"}},
		{&s.TBTFactor, "tbt_stat", []string{"tbt_factor", "tbt_s"}},
		{&s.TPOTS, "tpot_stat", []string{"tpot_s"}},
		{&s.E2ES, "e2e_stat", []string{"e2e_s"}},
		{&s.DelayS, "delay_stat", []string{"delay_s"}},
	}
	chosen := func(keys []string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return l.chosen["slo."+key] })
	}
	own := false
	for _, b := range bounds {
		own = own || chosen(b.keys)
	}
	for _, b := range bounds {
		switch {
		case !own, chosen(b.keys):
		case l.chosen["slo."+b.stat]:
			return &KeyError{Key: "slo." + b.stat, Reason: "bounds nothing; set slo." +
				b.keys[len(b.keys)-1] + " too"}
		default:
			*b.limit = 0
		}
	}
	return nil
}
