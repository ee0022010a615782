package config

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim"
)

// Setting is one key of a configuration and the value that a document gives it. A loader keeps all
// settings in order of precedence: the last value of a key holds.
type Setting struct {
	Key   string // whole name, as in selection.on
	Value any    // as TOML decodes it

	at    string // as the document has the key: the same, or systems[0].selection.on
	where string // file:line, a flag, or what built-in data

	flag   bool // by a flag or an axis
	fitted bool // to the model, card and mix of a built-in experiment (neutral.go)
	kept   bool // by a result, which spells all keys out: which somebody chose is not known

	card string // that a figure of [card] stands beside in its file; empty: any
}

// NewSetting returns a setting from a flag's text, parsed as the key's type.
func NewSetting(key, text string) Setting {
	return Setting{Key: key, Value: flagText(text), at: key, where: varyFlag}
}

// ofSystem returns the key of all systems that a key of one of [[systems]] sets; any other key
// itself.
func (g *Setting) ofSystem() string {
	if table, key, _ := strings.Cut(g.at, "."); strings.HasPrefix(table, "systems[") {
		return specKey(key)
	}
	return g.Key
}

// last returns the last setting of a key; an empty setting if the key was not set.
func (l *loader) last(key string) *Setting { return cmp.Or(lastOf(l.settings, key), new(Setting)) }

// lastOf is last for a list of settings; nil if there is none.
func lastOf(settings []Setting, key string) *Setting {
	for i := len(settings) - 1; i >= 0; i-- {
		if settings[i].Key == key {
			return &settings[i]
		}
	}
	return nil
}

// origin returns the place that last set a key; "" if it was not set.
func (l *loader) origin(key string) string { return l.last(key).where }

// chosen reports whether a key is set and its last setting is not fitted to a model.
func (l *loader) chosen(key string) bool { g := l.last(key); return g.Key != "" && !g.fitted }

// asked reports whether the user may expect an effect from a key.
func (l *loader) asked(key string) bool { return l.chosen(key) && !l.last(key).kept }

// drop removes settings.
func (l *loader) drop(which func(g Setting) bool) {
	l.settings = slices.DeleteFunc(slices.Clone(l.settings), which)
}

// set sets a key of a system.
func (g *Setting) set(s *sim.Spec) error {
	key := strings.TrimPrefix(g.Key, "system.")
	err := decodeInto(s, strings.TrimSuffix(g.at, key), key, g.Value)
	var bad *KeyError
	if errors.As(err, &bad) && bad.Where == "" {
		bad.Where = g.where
	}
	return err
}
