package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim"
)

// nameFits is what a system may be called.
const nameFits = `^[A-Za-z0-9][A-Za-z0-9._+-]*$`

// flat is a table with the keys of tables within it as dotted keys of its own.
func flat(table map[string]any) map[string]any {
	all := map[string]any{}
	for key, value := range table {
		inner, ok := value.(map[string]any)
		if !ok {
			all[key] = value
			continue
		}
		for k, v := range flat(inner) {
			all[key+"."+k] = v
		}
	}
	return all
}

// setSystem keeps a key of all systems, and checks it by itself before the systems that it applies
// to are known.
func (l *loader) setSystem(path string, value any, flag bool) error {
	var s sim.Spec
	key := strings.TrimPrefix(path, "system.")
	if key == "name" {
		return &KeyError{Key: path,
			Reason: "a name belongs to one system; write a [[systems]] table"}
	}
	if _, _, known := fieldNamed(&s, key); !known {
		table, name, _ := strings.Cut(path, ".")
		var keys []string
		for _, k := range append(keysOf(&s), "preset") {
			if k, ok := strings.CutPrefix(specKey(k), table+"."); ok {
				keys = append(keys, k)
			}
		}
		return unknownKey(path, name, keys)
	}
	if flag {
		l.commonByFlag[key] = value
	} else {
		l.common[key] = value
	}
	return decodeInto(&s, strings.TrimSuffix(path, key), key, value)
}

// systems puts the systems together: the preset, then [system] of files, then
// the system's own [[systems]] table, then --set system.KEY.
func (l *loader) systems() error {
	customs := map[string]bool{}
	for _, c := range l.custom {
		name, _ := c.table["name"].(string)
		if name == "" {
			return c.doc.locate(&KeyError{Key: c.path + "name",
				Reason: "every [[systems]] table needs a name"})
		}
		if !regexp.MustCompile(nameFits).MatchString(name) {
			return c.doc.locate(&KeyError{Key: c.path + "name", Value: quote(name),
				Reason: "names a folder too; use letters, digits and . _ + -"})
		}
		if customs[name] {
			return c.doc.locate(&KeyError{Key: c.path + "name", Value: quote(name),
				Reason: "this name is taken"})
		}
		customs[name] = true
	}
	names := slices.Clone(l.presets)
	if !l.presetsOnly {
		for _, c := range l.custom {
			if name := c.table["name"].(string); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if n := len(l.presets); n > 0 && n < len(names) {
		l.cfg.Notes = append(l.cfg.Notes, fmt.Sprintf("both system.preset and [[systems]] name "+
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
		l.cfg.Systems = append(l.cfg.Systems, spec)
	}
	return nil
}

// system puts one system together and checks it.
func (l *loader) system(name string, custom *customSystem) (sim.Spec, error) {
	presets := Presets()
	preset := presets[0]
	if custom != nil {
		if v, ok := custom.table["preset"]; ok {
			from, _ := v.(string)
			p, ok := PresetNamed(presets, from)
			if !ok {
				return sim.Spec{}, custom.doc.locate(&KeyError{Key: custom.path + "preset", Value: Show(v),
					Reason: "no such system" + DidYouMean(from, presetNames(presets))})
			}
			preset = p
		}
	} else {
		p, ok := PresetNamed(presets, name)
		if !ok {
			reason := "no such system" + DidYouMean(name, presetNames(presets)) +
				"; sparseserve list systems has all"
			if strings.Contains(name, ",") {
				reason = "no such system; a list in a file is " + Show(listOf(name))
			}
			return sim.Spec{}, l.keyError("system.preset", quote(name), reason)
		}
		preset = p
	}

	spec, err := l.inEngine(&preset, custom)
	if err != nil {
		return spec, err
	}
	for _, key := range slices.Sorted(maps.Keys(l.common)) {
		if err := decodeSystem(&spec, key, l.common[key]); err != nil {
			return spec, l.place(err)
		}
	}
	if custom != nil {
		for _, key := range custom.doc.keys(custom.path, custom.table) {
			if key == "preset" {
				continue
			}
			if err := decodeInto(&spec, custom.path, key, custom.table[key]); err != nil {
				return spec, custom.doc.locate(err)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.commonByFlag)) {
		if err := decodeSystem(&spec, key, l.commonByFlag[key]); err != nil {
			return spec, l.place(err)
		}
	}
	spec.Name = name
	l.settle(&spec, &preset, custom)
	if bad := checkSpec(&spec); bad != nil {
		return spec, l.placeSystem(bad, custom)
	}
	return spec, nil
}

// decodeSystem sets a key that all systems have.
func decodeSystem(s *sim.Spec, key string, value any) error {
	return decodeInto(s, strings.TrimSuffix(specKey(key), key), key, value)
}

// listOf splits a list without brackets.
func listOf(text string) (list []any) {
	for name := range strings.SplitSeq(text, ",") {
		list = append(list, strings.TrimSpace(name))
	}
	return list
}

// customNamed returns the [[systems]] table of that name, or nil.
func (l *loader) customNamed(name string) *customSystem {
	for i := range l.custom {
		if l.custom[i].table["name"] == name {
			return &l.custom[i]
		}
	}
	return nil
}

// placeSystem says where the offending key of a system was set.
func (l *loader) placeSystem(bad *KeyError, custom *customSystem) error {
	key := strings.TrimPrefix(bad.Key, "system.")
	if _, byFlag := l.commonByFlag[key]; !byFlag && custom != nil {
		if _, own := custom.table[key]; own {
			bad.Key = custom.path + key
			return custom.doc.locate(bad)
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
