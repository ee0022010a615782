package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// A key by the name that it had before is an error that has the place and the name of today: in a
// table, in a system of its own, in a flag, on an axis and as a knob.
func TestOldNames(t *testing.T) {
	for old, now := range renamed {
		now, _, _ = strings.Cut(now, ",")
		if !slices.Contains(SettableKeys(), now) || slices.Contains(SettableKeys(), old) {
			t.Errorf("%s is %s now, which is no key, or both are", old, now)
		}
		own := "systems[0]." + strings.TrimPrefix(old, "system.")
		for _, c := range []struct{ text, set, key, where string }{
			{old + " = 1\n", "", old, "s.toml:1"},
			{"", old + "=1", old, "--set " + old + "=1"},
			{"[[axis]]\ngrid." + old + " = [1]\n", "", "axis[0].grid." + old, "s.toml:2"},
			{"[[systems]]\nname = \"a\"\n" + strings.TrimPrefix(old, "system.") + " = 1\n", "", own,
				"s.toml:3"},
		} {
			if c.key == own && !strings.HasPrefix(old, "system.") {
				continue
			}
			var sets []string
			if c.set != "" {
				sets = []string{c.set}
			}
			_, err := LoadSweep(t.Context(), testkit.Write(t, "s.toml", c.text), sets)
			var key *KeyError
			if !errors.As(err, &key) || key.Key != c.key || key.Where != c.where ||
				!strings.HasPrefix(key.Reason, "is "+now) {
				t.Errorf("%s%s: %+v, want %s at %s", c.text, c.set, err, c.key, c.where)
			}
		}
		if _, err := SettableKey(old); err == nil || !strings.HasPrefix(err.Error(), "is "+now) {
			t.Errorf("--vary %s: %v", old, err)
		}
	}
}
