package config

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

//go:embed presets.toml
var presetsTOML string

// Preset is a serving system under a name.
type Preset struct {
	Name, About string
	Spec        sim.Spec

	own       map[string]any // keys that it or those it starts from set
	ownEngine bool           // it names another engine than the preset that it starts from
	alone     bool           // and no other preset runs under that engine because of it
}

// Presets lists the built-in systems, from vLLM to SparseServe. It panics when
// the built-in table is broken.
func Presets() []Preset { return slices.Clone(presets()) }

var presets = sync.OnceValue(func() []Preset {
	var tables map[string]map[string]any
	meta, err := toml.Decode(presetsTOML, &tables)
	if err != nil {
		panic(fmt.Sprintf("presets.toml: %v", err))
	}
	var presets []Preset
	for _, key := range meta.Keys() {
		if len(key) != 1 {
			continue
		}
		p := Preset{Name: key[0], own: map[string]any{}}
		table := tables[p.Name]
		from, ok := table["from"].(string)
		if _, named := table["engine"]; ok && named {
			p.ownEngine = true
		}
		if ok {
			base, ok := PresetNamed(presets, from)
			if !ok {
				panic(fmt.Sprintf("presets.toml: %s starts from %q, which is not above it", p.Name, from))
			}
			maps.Copy(p.own, base.own)
		}
		p.About, _ = table["about"].(string)
		p.alone, _ = table["alone"].(bool)
		keys := &document{}
		keys.add("", table)
		for _, g := range keys.settings {
			p.own[g.Key] = g.Value
		}
		delete(p.own, "from")
		delete(p.own, "about")
		delete(p.own, "alone")
		engine, _ := p.own["engine"].(string)
		use, _ := p.own["use"].(string)
		e, err := hw.LoadEngine(engine)
		if err == nil {
			p.Spec, err = p.under(e, engine, use, nil)
		}
		if err != nil {
			panic(fmt.Sprintf("presets.toml: %v", err))
		}
		presets = append(presets, p)
	}
	return presets
})

// under returns the system in an engine, called name in the configuration: the engine's defaults on
// a card for a use, overridden by the preset's own keys. A nil card stands for any card.
func (p *Preset) under(e *hw.Engine, name, use string, card *hw.Card) (sim.Spec, error) {
	defaults := e.DefaultsOn(card, use)
	spec := sim.Spec{}
	for _, f := range FieldsOf(&defaults) {
		specField(&spec, f.Key).Set(f.Value) // engines' defaults are keys of a system
	}
	for k, v := range p.own {
		if err := decodeInto(&spec, p.Name+".", k, v); err != nil {
			return sim.Spec{}, err
		}
	}
	spec.Name, spec.Engine, spec.Use = p.Name, name, use
	return spec, nil
}

// PresetNamed finds a preset by name.
func PresetNamed(presets []Preset, name string) (Preset, bool) {
	for _, p := range presets {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}
