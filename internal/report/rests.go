package report

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

// machine is what a configuration says of the hardware.
type machine struct {
	GPU     string             `toml:"gpu"`
	Card    map[string]float64 `toml:"card"`
	Systems []struct {
		Name   string `toml:"name"`
		Engine string `toml:"engine"`
	} `toml:"systems"`
}

// restOn adds the figures of the machines of runs, each once, with where they come from, and
// returns the systems with their engines. Folders without a configuration have nothing to say.
func (p *page) restOn(folders []string) (systems []sim.Spec, err error) {
	seen := map[string]bool{}
	for _, folder := range folders {
		path := filepath.Join(folder, "config.toml")
		text, err := files.ReadResult(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var m machine
		if _, err := toml.Decode(string(text), &m); err != nil {
			return nil, fmt.Errorf("%s: damaged: %w", path, err)
		}
		for _, s := range m.Systems {
			systems = append(systems, sim.Spec{Name: s.Name, Engine: s.Engine})
			if key := fmt.Sprint(m.GPU, " ", s.Engine, " ", m.Card); m.GPU != "" && s.Engine != "" &&
				!seen[key] {
				seen[key] = true
				r, err := m.rest(s.Engine)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", path, err)
				}
				p.Rests = append(p.Rests, r)
			}
		}
	}
	return systems, nil
}

// rest lists the figures of a card, as changed, and of an engine, and says where the kernels'
// costs come from.
func (m *machine) rest(engine string) (r rest, err error) {
	c, err := hw.LoadCard(m.GPU)
	if err != nil {
		return r, err
	}
	e, err := hw.LoadEngine(engine)
	if err != nil {
		return r, err
	}
	k, derived, err := c.KernelsOf(e.Kernels, m.GPU)
	if err != nil {
		return r, err
	}
	how := "measured on this card"
	if derived {
		how = "derived from those measured on " + k.MeasuredOn
	}
	r.Title = fmt.Sprintf("%s with engine %s", c.Title, e.Name)
	if len(m.Card) > 0 {
		r.Title += ", with " + strings.Join(slices.Sorted(maps.Keys(m.Card)), ", ") + " set"
	}
	t := table{Header: []string{"figure", "value", "unit", "from", "source"}, Right: 5}
	keys, units := hw.ChangeKeys()
	for i, key := range keys {
		if v, ok := m.Card[key]; ok {
			t.Rows = append(t.Rows, []string{"card." + key, number(v), units[i], "set",
				"the configuration, in place of the card's own"})
		}
	}
	count := map[string]int{}
	for _, f := range slices.Concat(c.Figures(), e.Figures()) {
		t.Rows = append(t.Rows, []string{f.Key, number(f.Value), f.Unit, f.From, f.Source})
		count[f.From]++
	}
	var words []string
	for _, from := range slices.Sorted(maps.Keys(count)) {
		words = append(words, fmt.Sprintf("%d %s", count[from], from))
	}
	r.Note = fmt.Sprintf("Kernels: %s, %s: %s. Figures of the card and the engine: %s. sparseserve "+
		"list gpus and list engines print them.",
		k.Name, how, k.Title, strings.Join(words, ", "))
	r.Table, r.Set = t, len(m.Card) > 0
	return r, nil
}
