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

// inEngine returns a preset in the engine that the configuration names, else its own: with that
// engine's defaults on the card, for the use that the configuration names.
func (l *loader) inEngine(preset *Preset, custom *customSystem) (sim.Spec, error) {
	own := sim.Spec{Engine: preset.Spec.Engine, Use: preset.Spec.Use}
	for _, key := range []string{"engine", "use"} {
		if v, ok := l.common[key]; ok {
			if err := decodeInto(&own, "system.", key, v); err != nil {
				return own, l.place(err)
			}
		}
		if custom != nil {
			if v, ok := custom.table[key]; ok {
				if err := decodeInto(&own, custom.path, key, v); err != nil {
					return own, custom.doc.locate(err)
				}
			}
		}
		if v, ok := l.commonByFlag[key]; ok {
			if err := decodeInto(&own, "system.", key, v); err != nil {
				return own, l.place(err)
			}
		}
	}
	card, err := l.inputs.card(l.cfg.GPU)
	if err != nil {
		card = nil // checkHardware says so
	}
	spec, err := preset.under(own.Engine, own.Use, card)
	if err != nil {
		return spec, l.placeSystem(&KeyError{Key: "engine", Value: quote(own.Engine),
			Reason: err.Error()}, custom)
	}
	return spec, nil
}

// settle decides what the configuration leaves to the model, and to what else it sets: sampling by
// the model's generation settings, chunks as large as a step, and no prefix cache where the
// engine's default cannot be simulated.
func (l *loader) settle(s *sim.Spec, preset *Preset, custom *customSystem) {
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
	if e, err := hw.LoadEngine(s.Engine); err == nil && len(e.Batch) > 0 &&
		!l.sets(preset, custom, "chunk_tokens") {
		s.ChunkTokens = s.MaxTokens
	}
	if !s.CachesPrefixes() || l.sets(preset, custom, "prefix_cache") {
		return
	}
	why := s.NoPrefixCache()
	switch {
	case why != "":
	case l.cfg.Workload.PrefixHit > 0:
		s.PrefixCache = sim.PrefixOff // the workload says what is cached
	case s.SpeculateTokens > 0:
		why = "is not simulated with speculate_tokens"
	case model.IsWindowed():
		why = fmt.Sprintf("is not simulated for %s, which has sliding windows", model.Name)
	}
	if why != "" {
		s.PrefixCache = sim.PrefixOff
		note := fmt.Sprintf("%s runs without the prefix cache that %s has by default: it %s", s.Name,
			s.Engine, why)
		if !slices.Contains(l.cfg.Notes, note) {
			l.cfg.Notes = append(l.cfg.Notes, note)
		}
	}
}

// sets reports whether the preset or the configuration sets a key of a system.
func (l *loader) sets(preset *Preset, custom *customSystem, key string) bool {
	if custom != nil {
		if _, ok := custom.table[key]; ok {
			return true
		}
	}
	_, byFlag := l.commonByFlag[key]
	_, byFile := l.common[key]
	_, byPreset := preset.own[key]
	return byFlag || byPreset || byFile
}
