package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/files"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/fleet"
	"github.com/sparseserve/sparseserve/sim/score"
	"github.com/sparseserve/sparseserve/traces"
)

// Load returns the runs of a configuration without axes; of the built-in default experiment if path
// is empty.
func Load(path string, sets []string) ([]Point, error) {
	s, err := LoadSweep(context.Background(), cmp.Or(path, experiments.Default), sets)
	if err != nil {
		return nil, err
	}
	if len(s.Axes) > 0 {
		return nil, s.file.locate(&KeyError{Key: "axis", Reason: ofSweeps})
	}
	return s.Variants[0], nil
}

// LoadPoint reads the configuration of one run from its results, and sets keys.
func LoadPoint(path string, sets ...string) (p Point, err error) {
	runs, err := Load(path, sets)
	if err == nil && len(runs) != 1 {
		err = fmt.Errorf("%s: makes %d runs, want the configuration of one", path, len(runs))
	}
	if err != nil {
		return p, err
	}
	return runs[0], nil
}

// openDocument returns the built-in experiment of that name, or reads the file at path. Names come
// first, because results of an experiment often lie in a folder of its name.
func openDocument(path string) (*document, error) {
	if e, ok := experiments.Named(path); ok {
		if e.Command == "" {
			return nil, fmt.Errorf("%s: serves no requests; %s runs it", path, e.Usage())
		}
		doc, err := parseDocument(path, e.Text)
		if err == nil {
			doc.fitted = e.Command == "simulate"
		}
		return doc, err
	}
	text, err := files.ReadText(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file, and no built-in experiment of that name%s",
			path, nearest.Meant(path, experiments.Names()))
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

// root has every key outside of systems' own tables: keys of a run, and keys of searches.
type root struct {
	Point
	Goodput GoodputSearch `toml:"goodput"`
	Plan    Plan          `toml:"plan"`
}

// loader merges documents in layers.
type loader struct {
	cfg      root
	lists    map[string]reflect.Value // values of the listed keys
	settings []Setting                // all that documents set, besides what systems of their own do
	files    []string                 // that were read
	notes    []string                 // surprises of the configuration, in words
	own      bool                     // the model, card or trace is not the built-in experiment's
	variants float64                  // of the sweep, each with these lists
	fitted   string                   // the model that the experiment below is fitted to
	onGPU    string                   // its card
	pinned   []Setting                // keys of its engine, where that holds (engine.go)
	search   bool                     // a search for the largest rate begins at the set rates
	buys     bool                     // for a plan: a system that does not fit its GPUs is no error
	unfit    []Unfit
	compares bool // with a record of a real server
	sweeps   bool // files may have the keys of a sweep
	varies   bool // for whatif
	models   bool // several are compared: values fitted to one model do not apply
	gpus     bool // are compared
	inputs   inputs

	// Systems are resolved after all documents have been read.
	presets     []string // names under system.preset
	presetsOnly bool     // set by a flag: no other system runs
	custom      []customSystem
	stepsGiven  bool // system.max_tokens or prefill.chunk_tokens of one
	effects     effects
}

// customSystem is one [[systems]] table.
type customSystem struct {
	doc          *document
	path         string // "systems[0]."
	name, preset string
	settings     []Setting // besides these two
}

func newLoader() *loader {
	p := Point{Workload: traces.DefaultSpec(), Scores: score.Default,
		Fleet: fleet.Spec{Replicas: 1, Router: fleet.RoundRobin}}
	return &loader{inputs: inputs{}, variants: 1, effects: newEffects(),
		cfg: root{p, DefaultGoodputSearch(), DefaultPlan()},
		lists: map[string]reflect.Value{"workload.rate": reflect.ValueOf([]float64(nil)),
			"seed":                 reflect.ValueOf([]uint64(nil)),
			"workload.concurrency": reflect.ValueOf([]int{0}),
			"fleet.replicas":       reflect.ValueOf([]int{1})}}
}

// clone returns a loader that can apply more documents without an effect on this one. Both share
// the inputs.
func (l *loader) clone() *loader {
	c := *l
	c.cfg.Card, c.lists = maps.Clone(l.cfg.Card), maps.Clone(l.lists)
	c.settings, c.files = slices.Clone(l.settings), slices.Clip(l.files)
	c.presets, c.custom = slices.Clone(l.presets), slices.Clone(l.custom)
	c.notes, c.unfit, c.effects = nil, nil, newEffects()
	return &c
}

// most returns the largest value of a listed key; 0 if it has none.
func (l *loader) most(key string) (most float64) {
	for i := range l.lists[key].Len() {
		most = max(most, l.lists[key].Index(i).Convert(reflect.TypeFor[float64]()).Float())
	}
	return most
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
	doc.fitted = true
	return l.apply(doc, false)
}

// apply adds one document over the previous ones.
func (l *loader) apply(doc *document, flag bool) error {
	l.files = append(l.files, doc.name)
	if len(doc.under("systems")) > 0 {
		l.presets, l.custom = nil, nil // the file selects the systems
	}
	kept := doc.complete()
	_, builtIn := experiments.Named(doc.name)
	for _, g := range doc.settings {
		search := strings.HasPrefix(g.Key, "goodput.") || strings.HasPrefix(g.Key, "plan.")
		g.flag, g.fitted, g.kept = flag, doc.fitted, kept || builtIn && search
		if err := l.decode(doc, &g); err != nil {
			return doc.locate(err)
		}
	}
	for _, figure := range doc.under("card") {
		if !flag && l.origin("gpu") != builtInDefault {
			l.last("card." + figure.Key).card = l.cfg.GPU
		}
	}
	if doc.fitted {
		l.fitted, l.onGPU = l.cfg.Model, l.cfg.GPU
	}
	return nil
}

// decode sets the value of a key, and keeps the setting.
func (l *loader) decode(doc *document, g *Setting) (err error) {
	table, name, nested := strings.Cut(g.Key, ".")
	array, _, _ := strings.Cut(table, "[")
	if rest, ok := strings.CutPrefix(g.Key, "system."); ok && strings.Contains(rest, ".") &&
		OfSystem(rest) {
		g.Key = rest // of a part, written below [system]
		table, name, nested = strings.Cut(g.Key, ".")
	}
	field, unit, known := fieldNamed(&l.cfg, g.Key)
	switch {
	case slices.Contains(sweepKeys, array) && !l.sweeps:
		return &KeyError{Key: array, Reason: ofSweeps}
	case array == "axis" || array == "base":
		return nil // loadSweep reads them
	case array == "systems":
		return l.addSystem(doc, g)
	case g.Key == "system.preset" && !g.isTable():
		l.presetsOnly = g.flag
		err = decodeValue(reflect.ValueOf(&l.presets).Elem(), g.Key, "", g.Value)
	case slices.Contains(listed, g.Key):
		list := reflect.New(l.lists[g.Key].Type()).Elem()
		err = decodeValue(list, g.Key, unit, g.Value)
		l.lists[g.Key] = list
	case table == "gpu" && (nested || g.isTable()):
		return &KeyError{Key: table, Reason: "want the name of a card; its figures are in [card], as " +
			"in card.hbm_size"}
	case known && !nested && !g.isTable():
		err = decodeValue(field, g.Key, unit, g.Value)
		l.cfg.Model, l.cfg.GPU = llm.NameOf(l.cfg.Model), hw.CardName(l.cfg.GPU)
	case !slices.Contains(tableNames, table) && !slices.Contains(sweepKeys, table):
		return unknownKey(array, array, slices.Concat(topKeys, tableNames, sweepKeys))
	case !nested && !g.isTable():
		return &KeyError{Key: table, Value: Show(g.Value), Reason: "want a table"}
	case table == "plan" && !nested:
	case !nested:
		return nil
	case table == "card":
		err = l.setCard(name, g.Value)
	case g.Key == "system.name":
		return &KeyError{Key: g.Key,
			Reason: "a name belongs to one system; write a [[systems]] table"}
	case known && OfSystem(g.Key):
		err = g.set(new(sim.Spec)) // it is set over presets later
	case known:
		err = decodeValue(field, g.Key, unit, g.Value)
	default:
		var names []string
		for _, key := range append(keysOf(&l.cfg), "system.preset") {
			if key, ok := strings.CutPrefix(key, table+"."); ok {
				names = append(names, key)
			}
		}
		err = unknownKey(g.Key, name, names)
	}
	l.settings = append(l.settings, *g)
	return err
}

// plans reports whether the configuration has a table [plan].
func (l *loader) plans() bool {
	return slices.ContainsFunc(l.settings,
		func(g Setting) bool { return g.Key == "plan" || strings.HasPrefix(g.Key, "plan.") })
}

// addSystem adds a key of a [[systems]] table.
func (l *loader) addSystem(doc *document, g *Setting) (err error) {
	path, key, _ := strings.Cut(g.at, ".")
	if list, ok := g.Value.([]any); path == "systems" {
		if ok && len(list) == 0 {
			return nil
		}
		value := "a table"
		if key == "" {
			value = Show(g.Value)
		}
		return &KeyError{Key: path, Value: value, Reason: "want an array of tables, [[systems]]"}
	}
	if path += "."; len(l.custom) == 0 || l.custom[len(l.custom)-1].path != path {
		l.custom = append(l.custom, customSystem{doc: doc, path: path})
	}
	c := &l.custom[len(l.custom)-1]
	switch key {
	case "":
	case "name":
		c.name, _ = g.Value.(string)
	case "preset":
		err = decodeValue(reflect.ValueOf(&c.preset).Elem(), g.at, "", g.Value)
	default:
		g.Key, g.fitted = specKey(key), false
		c.settings = append(c.settings, *g)
	}
	return err
}
