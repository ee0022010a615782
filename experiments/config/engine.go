package config

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// SamplingModel is the value of system.sampling that leaves the choice to the model.
const SamplingModel = "model"

// engineKeys lists the keys of [system] that say which engine runs, and those that it sets.
func engineKeys() []string {
	return append(keysOf(new(hw.EngineDefaults)), "engine", "use")
}

// pinEngine takes the engine of the paper's experiment, and what it sets, out of the keys that all
// systems have. It stays pinned where the experiment's own model, card and trace run.
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
		l.drop(func(g *given) bool { return g.key == specKey(key) })
	}
}

// pins returns the keys of the paper's engine that a system has: none where a preset of the run or
// its own table names an engine.
func (l *loader) pins(preset *Preset, custom *customSystem) []given {
	if preset.ownEngine || l.brought() != "" ||
		custom != nil && lastOf(custom.settings, "system.engine") != nil {
		return nil
	}
	return l.pinned
}

// inEngine returns a preset in the engine that the configuration names, else its own: with that
// engine's defaults on the card, for the use that the configuration names.
func (l *loader) inEngine(preset *Preset, custom *customSystem, layers []given) (sim.Spec, error) {
	own := sim.Spec{Engine: l.engineOf(preset), Use: preset.Spec.Use}
	for i := range layers {
		if g := &layers[i]; g.key == "system.engine" || g.key == "system.use" {
			if err := g.set(&own); err != nil {
				return own, err
			}
		}
	}
	card, err := l.inputs.card(l.cfg.GPU)
	if err != nil {
		card = nil // checkHardware says so
	}
	engine, err := l.inputs.engine(own.Engine)
	var spec sim.Spec
	if err == nil {
		spec, err = preset.under(engine, own.Engine, own.Use, card)
	}
	if err != nil {
		return spec, l.placeSystem(&KeyError{Key: "system.engine", Value: quote(own.Engine),
			Reason: err.Error()}, custom)
	}
	return spec, nil
}

// engineOf is the engine of a preset of which the configuration names none. A preset that names
// none either runs under the one that another preset of the run names, as vllm-0.15 does, so that
// both are compared under one engine.
func (l *loader) engineOf(preset *Preset) string {
	if brought := l.brought(); brought != "" && !preset.ownEngine {
		return brought
	}
	return preset.Spec.Engine
}

// brought returns the engine that presets of the run name; empty where they name none, or several.
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
		case !ok || !p.ownEngine:
		case engine != "" && engine != p.Spec.Engine:
			return ""
		default:
			engine = p.Spec.Engine
		}
	}
	return engine
}

// settle decides what the configuration leaves to the model, and to what else it sets: sampling by
// the model's generation settings, chunks as large as a step, and no prefix cache where the
// engine's default cannot be simulated.
func (l *loader) settle(s *sim.Spec, preset *Preset, layers []given) {
	sets := func(key string) bool { return preset.own[key] != nil || lastOf(layers, key) != nil }
	model, err := l.inputs.model(l.cfg.Model)
	if err != nil {
		return // checkHardware says so
	}
	if s.Sampling == SamplingModel {
		s.Sampling = "random"
		if 0 < model.TopP && model.TopP < 1 {
			s.Sampling = SamplingTopP
		}
	}
	if e, err := l.inputs.engine(s.Engine); err == nil && len(e.Batch) > 0 &&
		!sets("prefill.chunk_tokens") {
		s.Prefill.ChunkTokens = s.MaxTokens
	}
	if !s.CachesPrefixes() || sets("prefix_cache.mode") {
		return
	}
	why := s.NoPrefixCache()
	switch {
	case why != "":
	case l.cfg.Workload.PrefixHit > 0:
		s.PrefixCache.Mode = sim.PrefixOff // the workload says what is cached
	case s.Speculation.Tokens > 0:
		why = "is not simulated with speculation.tokens"
	case model.IsWindowed():
		why = fmt.Sprintf("is not simulated for %s, which has sliding windows", model.Name)
	}
	if why != "" {
		s.PrefixCache.Mode = sim.PrefixOff
		note := fmt.Sprintf("%s runs without the prefix cache that %s has by default: it %s", s.Name,
			s.Engine, why)
		if !slices.Contains(l.cfg.Notes, note) {
			l.cfg.Notes = append(l.cfg.Notes, note)
		}
	}
}
