package diff

import (
	"fmt"
	"testing"
)

// TestSettingsOfSystems: settings are compared of systems that both folders have, or of the one
// that each has.
func TestSettingsOfSystems(t *testing.T) {
	folderOf := func(config map[string]string) *Folder { return &Folder{config: config} }
	two := map[string]string{"gpu": "x", "systems.a.name": "a", "systems.a.window": "1",
		"systems.b.name": "b", "systems.b.window": "2"}
	for _, c := range []struct {
		a, b map[string]string
		want string
	}{
		{two, map[string]string{"gpu": "x", "systems.b.name": "b", "systems.b.window": "3"},
			"[{systems a, b b} {systems.b.window 2 3}]"},
		{map[string]string{"systems.a.name": "a", "systems.a.window": "1"},
			map[string]string{"systems.b.name": "b", "systems.b.window": "1"}, "[{system.name a b}]"},
		{two, two, "[]"},
	} {
		if got := fmt.Sprint(settings(folderOf(c.a), folderOf(c.b))); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
