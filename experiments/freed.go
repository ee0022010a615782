package experiments

import (
	_ "embed"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"sparseserve/hw"
)

//go:embed freed.toml
var freedTOML string

// Freed is a parameter that no paper gives.
type Freed struct {
	Name     string             `toml:"name"`
	Key      string             `toml:"key"`
	Profile  string             `toml:"profile"` // the hardware profile that has the key; empty: a configuration has it
	Value    float64            `toml:"value"`
	Unit     string             `toml:"unit"`   // empty: a number
	Values   map[string]float64 `toml:"values"` // by model; then Value is not set
	Most     float64            `toml:"most"`   // 0 = none
	Distance float64            `toml:"distance"`
	Reason   string             `toml:"reason"`
}

// FreedParameters lists them all. It panics when the built-in table is broken.
func FreedParameters() []Freed {
	var table struct {
		Freed []Freed `toml:"freed"`
	}
	if _, err := toml.Decode(freedTOML, &table); err != nil {
		panic(fmt.Sprintf("freed.toml: %v", err))
	}
	return table.Freed
}

// Of returns the parameter's value for a model, and whether it has one.
func (f *Freed) Of(model string) (float64, bool) {
	if f.Values == nil {
		return f.Value, true
	}
	v, ok := f.Values[model]
	return v, ok
}

// Scaled is a value times a factor, or its distance to f.Distance times it.
func (f *Freed) Scaled(value, factor float64) float64 {
	v := f.Distance + factor*(value-f.Distance)
	if f.Most > 0 {
		v = math.Min(v, f.Most)
	}
	return v
}

// Change is a freed parameter at a multiple of its value.
type Change struct {
	Freed
	Factor float64
}

// sets returns the --set flags that make the change in a configuration. A
// changed profile is written into dir. An experiment that sets the parameter to
// a value of its own keeps it.
func (c *Change) sets(dir string, config *Config) ([]string, error) {
	want, ok := c.Of(config.Model)
	if !ok || c.Profile != "" && c.Profile != config.GPU {
		return nil, nil
	}
	tree, table, key, err := c.place(config)
	if err != nil {
		return nil, err
	}
	have, ok := table[key].(float64)
	if !ok {
		return nil, fmt.Errorf("freed.toml: %s: no such number", c.Name)
	}
	if have != want {
		return nil, nil
	}
	table[key] = c.Scaled(have, c.Factor)
	if c.Profile == "" {
		return []string{c.Key + "=" + number(table[key].(float64))}, nil
	}
	text, err := toml.Marshal(tree)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, c.Profile+".toml")
	return []string{"gpu=" + file}, writeFile(file, text)
}

// place returns the document that has the parameter, and the table and key
// within it.
func (f *Freed) place(config *Config) (tree, table map[string]any, key string, err error) {
	path := strings.Split(f.Key, ".")
	var text []byte
	if f.Profile == "" {
		text, err = config.TOML()
	} else {
		path = append(path, "value") // a figure has its unit beside it
		var gpu *hw.Profile
		if gpu, err = hw.LoadProfile(f.Profile); err == nil {
			text, err = gpu.Encode()
		}
	}
	if err != nil {
		return nil, nil, "", err
	}
	if _, err := toml.Decode(string(text), &tree); err != nil {
		return nil, nil, "", err
	}
	table = tree
	for _, name := range path[:len(path)-1] {
		table, _ = table[name].(map[string]any)
	}
	return tree, table, path[len(path)-1], nil
}

// config loads a configuration over the default one, with the lab's change made
// in it.
func (l *Lab) config(sets ...string) (*Config, error) {
	c, err := Load("", sets)
	if err != nil || l.Change == nil {
		return c, err
	}
	more, err := l.Change.sets(l.Dir, c)
	if err != nil {
		return nil, err
	}
	return Load("", slices.Concat(sets, more))
}
