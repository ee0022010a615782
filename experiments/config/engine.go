package config

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// SamplingModel is the value of system.sampling that uses the model's own setting.
const SamplingModel = "model"

// kvAuto is the value of system.kv_dtype that uses the checkpoint's type of KV, or the engine's.
const kvAuto = "auto"

// engineKeys lists the keys of [system] that choose the engine, and the keys that an engine sets.
func engineKeys() []string {
	return append(keysOf(new(hw.EngineDefaults)), "engine", "use")
}

// pinEngine removes the engine of the paper's experiment, and the keys that it sets, from the keys
// of all systems. They stay if the experiment runs with its own model, card and trace.
func (l *loader) pinEngine(ownTrace bool) {
	own := ownTrace || l.models || l.gpus || l.cfg.Model != l.fitted || l.cfg.GPU != l.onGPU ||
		l.chosen("system.engine")
	l.pinned = nil
	for _, key := range engineKeys() {
		g := l.last(specKey(key))
		if !g.fitted {
			continue
		}
		if !own {
			l.pinned = append(l.pinned, *g)
		}
		l.drop(func(g Setting) bool { return g.Key == specKey(key) })
	}
}

// pins returns the settings between a preset and the configuration: the engine that another preset
// of the run names, such as vllm-0.15, so that both are compared under one engine, or the keys of
// the paper's engine. There are none if the preset or the system's own table names an engine.
func (l *loader) pins(preset *Preset) []Setting {
	const key = "system.engine"
	brought, own := l.brought(), l.last(key)
	switch {
	case preset.ownEngine:
		return nil
	case brought != "":
		return []Setting{{Key: key, at: key, Value: brought}}
	case own.at != own.Key:
		return nil
	}
	return l.pinned
}

// system returns the system that settings make, over the defaults that their engine has for their
// use on a card; nil stands for any card.
func (in inputs) system(settings []Setting, card *hw.Card) (spec sim.Spec, err error) {
	var own sim.Spec
	for i := range settings {
		if g := &settings[i]; g.Key == "system.engine" || g.Key == "system.use" {
			if err := g.set(&own); err != nil {
				return spec, err
			}
		}
	}
	engine, err := in.engine(own.Engine)
	if err != nil {
		return spec, &KeyError{Key: "system.engine", Value: quote(own.Engine), Reason: err.Error()}
	}
	defaults := engine.DefaultsOn(card, own.Use)
	for _, f := range FieldsOf(&defaults) {
		specField(&spec, f.Key).Set(f.Value) // engines' defaults are keys of a system
	}
	for i := range settings {
		if err := settings[i].set(&spec); err != nil {
			return spec, err
		}
	}
	return spec, nil
}

// brought returns the engine that presets of the run name; "" if they name none or several.
func (l *loader) brought() string {
	names := slices.Clone(l.presets)
	for _, c := range l.custom {
		if c.preset != "" && !l.presetsOnly {
			names = append(names, c.preset)
		}
	}
	engine := ""
	for _, name := range names {
		switch p, ok := PresetNamed(presets(), name); {
		case !ok || !p.ownEngine || p.alone:
		case engine != "" && engine != p.Spec.Engine:
			return ""
		default:
			engine = p.Spec.Engine
		}
	}
	return engine
}

// settle sets the keys that the configuration leaves open: sampling from the model's generation
// settings, chunks as large as a step, and no prefix cache if the engine's default cannot be
// simulated.
func (l *loader) settle(s *sim.Spec, layers []Setting) {
	sets := func(key string) bool { return lastOf(layers, key) != nil }
	model, err := l.inputs.model(l.cfg.Model)
	if err != nil {
		return // checkHardware reports the error
	}
	if s.Sampling == SamplingModel {
		s.Sampling = "random"
		if 0 < model.TopP && model.TopP < 1 {
			s.Sampling = SamplingTopP
		}
	}
	card, _ := l.inputs.card(l.cfg.GPU)
	if e, err := l.inputs.engine(s.Engine); err == nil {
		if len(e.Batch) > 0 && !sets("prefill.chunk_tokens") {
			s.Prefill.ChunkTokens = s.MaxTokens
		}
		share, ok := e.Utilisation(card, s.MaxTokens, s.TensorParallel)
		if ok && !sets("system.utilisation") {
			s.Utilisation = share
		}
		if s.KVDtype == kvAuto && e.IndexedKV != "" && model.IsIndexed() && card != nil &&
			card.GPU.PeakFP4.Set() && !card.Derived.OtherVendor() {
			s.KVDtype = e.IndexedKV
		}
	}
	if !s.CachesPrefixes() || sets("prefix_cache.mode") {
		return
	}
	why := s.NoPrefixCache()
	switch {
	case why != "":
	case l.cfg.Workload.PrefixHit > 0:
		s.PrefixCache.Mode = sim.PrefixOff // the workload gives the cached share
	case model.IsWindowed() && s.PrefixCache.Mode == sim.PrefixTree:
		why = fmt.Sprintf("is simulated for the sliding windows of %s only with whole contexts in all "+
			"layers, which prefix_cache.mode = \"radix\" sets", model.Name)
	}
	if why != "" {
		s.PrefixCache.Mode = sim.PrefixOff
		note := fmt.Sprintf("%s runs without the prefix cache that %s has by default: it %s", s.Name,
			s.Engine, why)
		if !slices.Contains(l.notes, note) {
			l.notes = append(l.notes, note)
		}
	}
}
