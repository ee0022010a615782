package config

import (
	_ "embed"
	"fmt"
	"slices"
	"sync"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/sim"
)

//go:embed presets.toml
var presetsTOML string

// Preset is a serving system under a name.
type Preset struct {
	Name, About string
	Spec        sim.Spec

	settings  []Setting // of it and of the presets that it starts from
	ownEngine bool      // it names another engine than the preset that it starts from
	alone     bool      // and no other preset runs under that engine because of it
}

// Presets lists the built-in systems, from vLLM to SparseServe. It panics when
// the built-in table is broken.
func Presets() []Preset { return slices.Clone(presets()) }

var presets = sync.OnceValue(func() (presets []Preset) {
	var tables map[string]map[string]any
	meta, err := toml.Decode(presetsTOML, &tables)
	in := inputs{}
	for _, key := range meta.Keys() {
		if len(key) != 1 {
			continue
		}
		p, table := Preset{Name: key[0]}, tables[key[0]]
		if from, ok := table["from"].(string); ok {
			base, ok := PresetNamed(presets, from)
			if !ok {
				panic(fmt.Sprintf("presets.toml: %s starts from %q, which is not above it", p.Name, from))
			}
			p.settings = base.settings
			_, p.ownEngine = table["engine"]
		}
		p.About, _ = table["about"].(string)
		p.alone, _ = table["alone"].(bool)
		for _, word := range []string{"from", "about", "alone"} {
			delete(table, word)
		}
		own := &document{name: "presets.toml"}
		own.add("", table)
		for _, g := range own.settings {
			g.Key = specKey(g.Key)
			p.settings = append(slices.Clip(p.settings), g)
		}
		if err == nil {
			p.Spec, err = in.system(p.settings, nil)
		}
		p.Spec.Name = p.Name
		presets = append(presets, p)
	}
	if err != nil {
		panic(fmt.Sprintf("presets.toml: %v", err))
	}
	return presets
})

// PresetNamed finds a preset by name.
func PresetNamed(presets []Preset, name string) (Preset, bool) {
	for _, p := range presets {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}
