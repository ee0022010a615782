package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim"
)

// nameFits matches permitted names of systems.
const nameFits = `^[A-Za-z0-9][A-Za-z0-9._+-]*$`

// systems resolves the systems. Layers, lowest first: the preset, [system] of files, the system's
// own [[systems]] table, --set system.KEY.
func (l *loader) systems() error {
	for i, c := range l.custom {
		reason := ""
		switch {
		case c.name == "":
			return c.doc.locate(&KeyError{Key: c.path + "name",
				Reason: "every [[systems]] table needs a name"})
		case !regexp.MustCompile(nameFits).MatchString(c.name):
			reason = "names a folder too; use letters, digits and . _ + -"
		case l.customNamed(c.name) != &l.custom[i]:
			reason = "this name is taken"
		}
		if reason != "" {
			return c.doc.locate(&KeyError{Key: c.path + "name", Value: quote(c.name), Reason: reason})
		}
	}
	names := l.systemNames()
	if n := len(l.presets); n > 0 && n < len(names) {
		l.notes = append(l.notes, fmt.Sprintf("both system.preset and [[systems]] name "+
			"systems, and all run: %s; %s",
			strings.Join(names[:n], ", "), strings.Join(names[n:], ", ")))
	}
	if len(names) == 0 {
		return l.keyError("system.preset", "[]", "no system to run")
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return l.keyError("system.preset", quote(name), "named twice")
		}
		spec, err := l.system(name, l.customNamed(name))
		if err != nil {
			return err
		}
		l.specs = append(l.specs, spec)
	}
	return nil
}

// systemNames lists the systems that run.
func (l *loader) systemNames() []string {
	names := slices.Clone(l.presets)
	for _, c := range l.custom {
		if !l.presetsOnly && !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// system resolves one system and checks it.
func (l *loader) system(name string, custom *customSystem) (sim.Spec, error) {
	presets := Presets()
	from, own := name, custom != nil
	if own {
		from = cmp.Or(custom.preset, presets[0].Name)
	}
	preset, ok := PresetNamed(presets, from)
	if !ok {
		reason := "no such system" + DidYouMean(from, presetNames(presets))
		switch {
		case own:
			return sim.Spec{}, custom.doc.locate(&KeyError{Key: custom.path + "preset",
				Value: quote(from), Reason: reason})
		case strings.Contains(name, ","):
			reason = "no such system; a list in a file is " + Show(flagText("["+name+"]").decode(true, true))
		default:
			reason += "; sparseserve list systems has all"
		}
		return sim.Spec{}, l.keyError("system.preset", quote(name), reason)
	}
	layers := l.layers(&preset, custom)
	spec, err := l.inEngine(&preset, custom, layers)
	if err != nil {
		return spec, err
	}
	for i := range layers {
		if err := layers[i].set(&spec); err != nil {
			return spec, err
		}
	}
	spec.Name = name
	l.settle(&spec, &preset, layers)
	if bad := checkSpec(&spec); bad != nil {
		return spec, l.placeSystem(bad, custom)
	}
	return spec, nil
}

// customNamed returns the [[systems]] table of that name, or nil.
func (l *loader) customNamed(name string) *customSystem {
	for i := range l.custom {
		if l.custom[i].name == name {
			return &l.custom[i]
		}
	}
	return nil
}

// placeSystem fills in the place of the offending key of a system.
func (l *loader) placeSystem(bad *KeyError, custom *customSystem) error {
	if custom != nil && !l.byFlag(bad.Key) {
		if g := lastOf(custom.settings, bad.Key); g != nil {
			bad.Key, bad.Where = g.at, g.where
			return bad
		}
	}
	return l.place(bad)
}

func presetNames(presets []Preset) []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.Name
	}
	return names
}
