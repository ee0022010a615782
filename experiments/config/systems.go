package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/nearest"
)

// nameFits matches permitted names of systems.
const nameFits = `^[A-Za-z0-9][A-Za-z0-9._+-]*$`

// systems resolves the systems, each in a loader of its own with the settings of the system.
// Layers, lowest first: the preset, [system] of files, the system's own [[systems]] table, --set
// system.KEY.
func (l *loader) systems() (all []*loader, err error) {
	for i, c := range l.custom {
		reason := ""
		switch {
		case c.name == "":
			return nil, c.doc.locate(&KeyError{Key: c.path + "name",
				Reason: "every [[systems]] table needs a name"})
		case !regexp.MustCompile(nameFits).MatchString(c.name):
			reason = "names a folder too; use letters, digits and . _ + -"
		case customNamed(l.custom[:i], c.name) != nil:
			reason = "this name is taken"
		}
		if reason != "" {
			return nil, c.doc.locate(&KeyError{Key: c.path + "name", Value: quote(c.name),
				Reason: reason})
		}
	}
	names := l.systemNames()
	if n := len(l.presets); n > 0 && n < len(names) {
		l.notes = append(l.notes, fmt.Sprintf("both system.preset and [[systems]] name "+
			"systems, and all run: %s; %s",
			strings.Join(names[:n], ", "), strings.Join(names[n:], ", ")))
	}
	if len(names) == 0 {
		return nil, l.keyError("system.preset", "[]", "no system to run")
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, l.keyError("system.preset", quote(name), "named twice")
		}
		own := l.clone()
		if err := own.system(name); err != nil {
			return nil, err
		}
		l.notes = append(l.notes, own.notes...)
		all = append(all, own)
	}
	return all, nil
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

// customNamed returns the [[systems]] table of that name, or nil.
func customNamed(all []customSystem, name string) *customSystem {
	if i := slices.IndexFunc(all, func(c customSystem) bool { return c.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// system resolves one system and checks it.
func (l *loader) system(name string) error {
	presets, from := Presets(), name
	custom := customNamed(l.custom, name)
	if custom != nil {
		from = cmp.Or(custom.preset, presets[0].Name)
		flags := func(g Setting) bool { return g.flag }
		set := slices.DeleteFunc(slices.Clone(l.settings), func(g Setting) bool { return !g.flag })
		l.drop(flags)
		l.settings = slices.Concat(l.settings, custom.settings, set)
	}
	preset, ok := PresetNamed(presets, from)
	if !ok {
		reason := "no such system" + nearest.Meant(from, presetNames(presets))
		switch {
		case custom != nil:
			return custom.doc.locate(&KeyError{Key: custom.path + "preset", Value: quote(from),
				Reason: reason})
		case strings.Contains(name, ","):
			reason = "no such system; a list in a file is " + Show(flagText("["+name+"]").decode(true, true))
		default:
			reason += "; sparseserve list systems has all"
		}
		return l.keyError("system.preset", quote(name), reason)
	}
	layers := slices.DeleteFunc(slices.Concat(preset.settings, l.pins(&preset), l.settings),
		func(g Setting) bool { return !OfSystem(g.Key) || g.Key == "system.preset" })
	card, err := l.inputs.card(l.cfg.GPU)
	if err != nil {
		card = nil // checkHardware says so
	}
	spec, err := l.inputs.system(layers, card)
	if err != nil {
		return l.place(err)
	}
	spec.Name = name
	l.settle(&spec, layers)
	l.cfg.System = spec
	if bad := checkSystem(&l.cfg.Point); bad != nil {
		return l.place(bad)
	}
	return nil
}

func presetNames(presets []Preset) []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.Name
	}
	return names
}
