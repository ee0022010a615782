package config

import (
	"reflect"
	"strings"

	"github.com/sparseserve/sparseserve/sim"
)

// SystemTOML writes the point's system as a user would, one whole key per line: a preset, and the
// keys that differ from it. A system with its own name starts from the nearest preset.
func (p *Point) SystemTOML() (string, error) {
	var best *encoder
	lines := 0
	for _, preset := range Presets() {
		e, n, err := p.over(&preset)
		if err != nil {
			continue // the preset does not run in the engine, or not on the model
		}
		if best == nil || n < lines || preset.Name == p.System.Name && n == lines {
			best, lines = e, n
		}
	}
	if best == nil { // no preset runs in this engine
		best = &encoder{}
		best.system(&p.System)
	}
	return best.out.String(), best.err
}

// over writes the point's system as differences from a preset, and counts the keys.
func (p *Point) over(preset *Preset) (e *encoder, keys int, err error) {
	sets := []string{"model=" + p.Model, "gpu=" + p.GPU, "system.preset=" + preset.Name}
	if p.System.Engine != preset.Spec.Engine {
		sets = append(sets, "system.engine="+p.System.Engine)
	}
	l := newLoader()
	l.buys = true // whether the preset would fit is not the question
	if err := l.base(); err != nil {
		return nil, 0, err
	}
	for _, do := range []func() error{func() error { return l.set(sets) }, l.neutral, l.systems} {
		if err := do(); err != nil {
			return nil, 0, err
		}
	}
	e = &encoder{}
	e.dotted("system.preset", preset.Name)
	keys = e.differences(&l.cfg.Systems[0], &p.System, preset.Spec.Engine)
	return e, keys, nil
}

// differences writes the keys in which to differs from `from`. It writes the engine if a preset's
// engine is different.
func (e *encoder) differences(from, to *sim.Spec, engine string) (keys int) {
	before := FieldsOf(from)
	for i, f := range FieldsOf(to) {
		same := reflect.DeepEqual(before[i].Value.Interface(), f.Value.Interface())
		if f.Key == "engine" {
			same = f.Value.String() == engine
		}
		if f.Key == "name" || same {
			continue
		}
		e.dotted(specKey(f.Key), f.Value.Interface())
		keys++
	}
	return keys
}

// dotted writes a key by its whole name.
func (e *encoder) dotted(key string, value any) {
	table, name, _ := strings.Cut(key, ".")
	e.printf("%s.", table)
	e.line(name, value)
}
