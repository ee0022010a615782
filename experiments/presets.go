package experiments

import (
	_ "embed"
	"fmt"

	"github.com/BurntSushi/toml"

	"sparseserve/sim"
)

//go:embed presets.toml
var presetsTOML string

// Preset is a serving system under a name.
type Preset struct {
	Name, About string
	Spec        sim.Spec
}

// Presets lists the built-in systems, from vLLM to SparseServe. It panics when
// the built-in table is broken.
func Presets() []Preset {
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
		p := Preset{Name: key[0]}
		table := tables[p.Name]
		if from, ok := table["from"].(string); ok {
			base, ok := presetNamed(presets, from)
			if !ok {
				panic(fmt.Sprintf("presets.toml: %s starts from %q, which is not above it", p.Name, from))
			}
			p.Spec = base.Spec
		}
		p.Spec.Name = p.Name
		p.About, _ = table["about"].(string)
		for k, v := range table {
			if k == "from" || k == "about" {
				continue
			}
			if err := decodeInto(&p.Spec, p.Name+".", k, v); err != nil {
				panic(fmt.Sprintf("presets.toml: %v", err))
			}
		}
		presets = append(presets, p)
	}
	return presets
}

func presetNamed(presets []Preset, name string) (Preset, bool) {
	for _, p := range presets {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}
