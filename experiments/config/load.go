package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/score"
	"github.com/sparseserve/sparseserve/traces"
)

// Load decodes a configuration. Layers, lowest first: the built-in default experiment (neutral if
// the configuration has its own trace or model, neutral.go), the file or built-in experiment named
// by path (none if empty), and the key=value texts of --set flags. Errors name the place, key and
// value.
func Load(path string, sets []string) (*Config, error) {
	l := newLoader()
	if err := l.base(); err != nil {
		return nil, err
	}
	name := experiments.Default
	if path != "" && path != experiments.Default {
		doc, err := openDocument(path)
		if err != nil {
			return nil, err
		}
		if err := l.apply(doc, false); err != nil {
			return nil, err
		}
		name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if err := l.set(sets); err != nil {
		return nil, err
	}
	l.cfg.Name = name
	if err := l.finish(); err != nil {
		return nil, err
	}
	l.cfg.Unused = l.effects().warnings() // before a factor becomes seconds
	return &l.cfg, l.inputs.oneLevel(&l.cfg)
}

// set applies the texts of --set flags.
func (l *loader) set(sets []string) error {
	for _, set := range sets {
		doc, err := parseFlag(set)
		if err != nil {
			return err
		}
		if err := l.apply(doc, true); err != nil {
			return err
		}
	}
	return nil
}

// LoadPoint reads the configuration of one run from its results, and sets keys.
func LoadPoint(path string, sets ...string) (p Point, err error) {
	c, err := Load(path, sets)
	if err != nil {
		return p, err
	}
	points := c.Points()
	if len(points) != 1 {
		return p, fmt.Errorf("%s: makes %d runs, want the configuration of one", path, len(points))
	}
	return points[0], nil
}

// openDocument reads the file at path, or the built-in experiment of that name if there is no such
// file.
func openDocument(path string) (*document, error) {
	text, err := files.ReadText(path)
	if errors.Is(err, fs.ErrNotExist) {
		if e, ok := experiments.Named(path); ok && e.Command == "" {
			return nil, fmt.Errorf("%s: serves no requests; %s runs it", path, e.Usage())
		} else if ok {
			doc, err := parseDocument(path, e.Text)
			if err == nil {
				doc.fitted = e.Command == "simulate"
			}
			return doc, err
		}
		return nil, fmt.Errorf("%s: no such file, and no built-in experiment of that name%s",
			path, DidYouMean(path, experiments.Names()))
	}
	if err != nil {
		return nil, err
	}
	doc, err := parseDocument(path, string(text))
	if err == nil {
		doc.relocate(filepath.Dir(path))
	}
	return doc, err
}

// loader merges documents in layers.
type loader struct {
	cfg      Config
	settings []given // all that documents set, besides what systems of their own do
	fitted   string  // the model that the experiment below is fitted to
	onGPU    string  // its card
	pinned   []given // keys of its engine, where that holds (engine.go)
	search   bool    // for the largest rate: those set are where it begins
	buys     bool    // for a plan: a system that does not fit its GPUs is no error
	unfit    []Unfit
	compares bool // with a record of a real server
	models   bool // several are compared: values fitted to one model do not apply
	gpus     bool // are compared
	inputs   inputs
	absent   map[string]string // paths of no file -> where else it was looked for

	// Systems are resolved after all documents have been read.
	presets     []string // names under system.preset
	presetsOnly bool     // set by a flag: no other system runs
	custom      []customSystem
}

// customSystem is one [[systems]] table.
type customSystem struct {
	doc          *document
	path         string // "systems[0]."
	name, preset string
	settings     []given // besides these two
}

func newLoader() *loader {
	return &loader{inputs: inputs{}, cfg: Config{Clients: []int{0}, Workload: traces.DefaultSpec(),
		Scores: score.Default, Replicas: []int{1},
		Fleet: sim.FleetSpec{Replicas: 1, Router: sim.RoundRobin}}}
}

// clone returns a loader that can apply more documents without an effect on this one. Both share
// the inputs.
func (l *loader) clone() *loader {
	c := *l
	c.cfg.Card = maps.Clone(l.cfg.Card)
	c.settings = slices.Clone(l.settings)
	c.presets, c.custom = slices.Clone(l.presets), slices.Clone(l.custom)
	c.unfit = nil
	return &c
}

// builtInDefault is the origin of keys that the user has not set.
const builtInDefault = "built-in default"

func (l *loader) base() error {
	e, ok := experiments.Named(experiments.Default)
	if !ok {
		panic("no built-in experiment " + experiments.Default)
	}
	doc, err := parseDocument(builtInDefault, e.Text)
	if err != nil {
		return err
	}
	doc.lines = nil
	doc.fitted = true
	return l.apply(doc, false)
}

// apply adds one document over the previous ones.
func (l *loader) apply(doc *document, flag bool) error {
	l.addAbsent(doc)
	l.cfg.files = append(slices.Clip(l.cfg.files), doc.name)
	if _, ok := doc.tree["systems"]; ok {
		l.presets = nil // the file says which systems run
	}
	for _, key := range doc.keys("", doc.tree) {
		value := doc.tree[key]
		var err error
		switch key {
		case "model":
			err = decodeValue(reflect.ValueOf(&l.cfg.Model).Elem(), key, "", value)
		case "gpu":
			if _, ok := value.(map[string]any); ok {
				err = &KeyError{Key: key, Reason: "want the name of a card; its figures are in [card], as in " +
					"card.hbm_size"}
				break
			}
			err = decodeValue(reflect.ValueOf(&l.cfg.GPU).Elem(), key, "", value)
		case "seed":
			err = l.cfg.decodeList(key, value)
		case "systems":
			err = l.addSystems(doc, value)
		case "base", "axis", "goodput", "plan":
			err = &KeyError{Key: key, Reason: "is of a file with axes, which simulate, goodput and plan run"}
		default:
			if slices.Contains(tableNames, key) {
				err = l.applyTable(doc, key, value, flag)
				break
			}
			err = unknownKey(key, key, slices.Concat(topKeys, tableNames, sweepKeys))
		}
		if err != nil {
			return doc.locate(err)
		}
		if !slices.Contains(tableNames, key) || key == "systems" {
			l.give(doc, key, value, flag)
		}
	}
	l.keepCards(doc, flag)
	if doc.fitted {
		l.fitted, l.onGPU = l.cfg.Model, l.cfg.GPU
	}
	return nil
}

func (l *loader) applyTable(doc *document, name string, value any, flag bool) error {
	table, err := doc.table(name, value)
	if err != nil {
		return err
	}
	path := name + "."
	for _, key := range doc.keys(path, table) {
		value := table[key]
		switch {
		case l.cfg.lists()[path+key] != nil:
			err = l.cfg.decodeList(path+key, value)
		case path+key == "system.preset":
			l.presets, l.presetsOnly = nil, flag
			err = decodeValue(reflect.ValueOf(&l.presets).Elem(), path+key, "", value)
		case name == "card":
			err = l.setCard(key, value)
		case OfSystem(path):
			err = checkSystemKey(path+key, value)
		default:
			err = decodeInto(l.cfg.table(name), path, key, value)
		}
		if err != nil {
			return err
		}
		l.give(doc, path+key, value, flag)
	}
	return nil
}

func (l *loader) addSystems(doc *document, value any) error {
	list, err := doc.tables("systems", value)
	if err != nil {
		return err
	}
	l.custom = nil
	for i, table := range list {
		c := customSystem{doc: doc, path: fmt.Sprintf("systems[%d].", i)}
		table := flat(table)
		for _, key := range doc.keys(c.path, table) {
			at, value := c.path+key, table[key]
			switch key {
			case "name":
				c.name, _ = value.(string)
			case "preset":
				err = decodeValue(reflect.ValueOf(&c.preset).Elem(), at, "", value)
			default:
				c.settings = append(c.settings, given{key: specKey(key), at: at, value: value,
					where: doc.where(at)})
			}
		}
		l.custom = append(l.custom, c)
	}
	return err
}
