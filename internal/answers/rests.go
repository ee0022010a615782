package answers

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

// machine is the hardware part of a configuration.
type machine struct {
	GPU     string             `toml:"gpu"`
	Card    map[string]float64 `toml:"card"`
	Systems []struct {
		Name   string `toml:"name"`
		Engine string `toml:"engine"`
	} `toml:"systems"`
}

// restOn adds the figures of the machines of runs, each once, with their sources, and returns the
// systems with their engines. A folder without a configuration adds nothing. Machines that wanted
// refuses add no figures.
func restOn(d *doc.Doc, folders []string, wanted func(*machine) bool) (systems []sim.Spec,
	err error) {
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
		if err := files.DecodeTOML(path, string(text), &m); err != nil {
			return nil, err
		}
		for _, s := range m.Systems {
			systems = append(systems, sim.Spec{Name: s.Name, Engine: s.Engine})
			key := fmt.Sprint(m.GPU, " ", s.Engine, " ", m.Card)
			if m.GPU == "" || s.Engine == "" || seen[key] || wanted != nil && !wanted(&m) {
				continue
			}
			seen[key] = true
			t, err := m.figures(s.Engine)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			d.Tables = append(d.Tables, t)
		}
	}
	return systems, nil
}

// figures returns a table of the figures of the card and of an engine, with their sources and the
// sources of the kernels' costs.
func (m *machine) figures(engine string) (t doc.Table, err error) {
	c, err := hw.LoadCard(m.GPU)
	if err != nil {
		return t, err
	}
	e, err := hw.LoadEngine(engine)
	if err != nil {
		return t, err
	}
	k, derived, err := c.KernelsOf(e.Kernels, m.GPU)
	if err != nil {
		return t, err
	}
	var set []hw.NamedFigure
	keys, units := hw.ChangeKeys()
	for i, key := range keys {
		if v, ok := m.Card[key]; ok {
			set = append(set, hw.NamedFigure{Key: "card." + key, Figure: hw.Figure{Value: v, Unit: units[i],
				From: "set", Source: "the configuration, in place of the card's own"}})
		}
	}
	t = figuresTable(slices.Concat(set, c.Figures(), e.Figures()))
	t.Under, t.Folded = "What the numbers rest on", true
	t.Title = fmt.Sprintf("%s with engine %s", c.Title, e.Name)
	if len(m.Card) > 0 {
		t.Title += ", with " + strings.Join(slices.Sorted(maps.Keys(m.Card)), ", ") + " set"
	}
	t.Note = fmt.Sprintf("Kernels: %s, %s: %s. sparseserve list gpus and list engines print all "+
		"figures.", k.Name, OriginOf(k, derived), k.Title)
	return t, nil
}

// onMachines adds to an answer from a folder what the machines of its runs rest on, and the
// configuration of the first.
func onMachines(d *doc.Doc, folders []string, wanted func(*machine) bool) (*doc.Doc, error) {
	if _, err := restOn(d, folders, wanted); err != nil || len(folders) == 0 {
		return d, err
	}
	addFile(d, filepath.Join(folders[0], run.ConfigFile), run.ConfigFile)
	return d, nil
}
