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
	"github.com/sparseserve/sparseserve/sim/fleet"
	"github.com/sparseserve/sparseserve/sim/score"
	"github.com/sparseserve/sparseserve/traces"
)

// Load is LoadSweep of a configuration without axes; the built-in default experiment if path is
// empty.
func Load(path string, sets []string) (*Config, error) {
	s, err := LoadSweep(context.Background(), cmp.Or(path, experiments.Default), sets)
	if err != nil {
		return nil, err
	}
	if len(s.Axes) > 0 {
		return nil, s.file.locate(&KeyError{Key: "axis", Reason: ofSweeps})
	}
	return s.Variants[0].Config, nil
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
	settings []Setting // all that documents set, besides what systems of their own do
	fitted   string    // the model that the experiment below is fitted to
	onGPU    string    // its card
	pinned   []Setting // keys of its engine, where that holds (engine.go)
	search   bool      // a search for the largest rate begins at the set rates
	buys     bool      // for a plan: a system that does not fit its GPUs is no error
	unfit    []Unfit
	compares bool // with a record of a real server
	sweeps   bool // files may have the keys of a sweep
	varies   bool // for whatif
	goodput  GoodputSearch
	plan     *Plan // nil: nothing is to be bought
	models   bool  // several are compared: values fitted to one model do not apply
	gpus     bool  // are compared
	inputs   inputs

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
	settings     []Setting // besides these two
}

func newLoader() *loader {
	return &loader{inputs: inputs{}, cfg: Config{Clients: []int{0}, Replicas: []int{1},
		Common: Common{Workload: traces.DefaultSpec(), Scores: score.Default,
			Fleet: fleet.Spec{Replicas: 1, Router: fleet.RoundRobin}}}, goodput: DefaultGoodputSearch()}
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
	doc.fitted = true
	return l.apply(doc, false)
}

// apply adds one document over the previous ones.
func (l *loader) apply(doc *document, flag bool) error {
	l.cfg.files = append(slices.Clip(l.cfg.files), doc.name)
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
	into := l.lists()[g.Key]
	switch {
	case slices.Contains(sweepKeys, array) && !l.sweeps:
		return &KeyError{Key: array, Reason: ofSweeps}
	case array == "axis" || array == "base":
		return nil // loadSweep reads them
	case array == "systems":
		return l.addSystem(doc, g)
	case into != nil && !g.isTable():
		if g.Key == "system.preset" {
			l.presetsOnly = g.flag
		}
		err = decodeValue(reflect.ValueOf(into).Elem(), g.Key, l.unit(g.Key), g.Value)
		if g.Key == "model" || g.Key == "gpu" {
			l.cfg.Model, l.cfg.GPU = llm.NameOf(l.cfg.Model), hw.CardName(l.cfg.GPU)
		}
	case table == "gpu":
		return &KeyError{Key: table, Reason: "want the name of a card; its figures are in [card], as " +
			"in card.hbm_size"}
	case !slices.Contains(tableNames, table) && !slices.Contains(sweepKeys, table):
		return unknownKey(array, array, slices.Concat(topKeys, tableNames, sweepKeys))
	case !nested && !g.isTable():
		return &KeyError{Key: table, Value: Show(g.Value), Reason: "want a table"}
	case table == "plan" && l.plan == nil:
		plan := DefaultPlan()
		l.plan = &plan
		return l.decode(doc, g)
	case !nested:
		return nil
	case table == "card":
		err = l.setCard(name, g.Value)
	case OfSystem(g.Key):
		err = checkSystemKey(g.Key, g.Value)
	default:
		err = l.decodeTable(table, name, g.Value)
	}
	l.settings = append(l.settings, *g)
	return err
}

// lists are the keys of one value, or of a list that expands into runs, with their values.
func (l *loader) lists() map[string]any {
	all := l.cfg.lists()
	all["model"], all["gpu"], all["system.preset"] = &l.cfg.Model, &l.cfg.GPU, &l.presets
	return all
}

// table returns the struct that a table is decoded into.
func (l *loader) table(name string) any {
	all := append(l.cfg.tables(), settable{"goodput", &l.goodput}, settable{"plan", l.plan})
	return all[slices.IndexFunc(all, func(t settable) bool { return t.name == name })].v
}

// decodeTable sets a key of a table, or of the table of a part.
func (l *loader) decodeTable(table, name string, value any) error {
	of, key := table, name
	if whole := partOf[table]; whole != "" {
		of, key = whole, table+"."+name
	}
	into := l.table(of)
	if f, unit, ok := fieldNamed(into, key); ok {
		return decodeValue(f, table+"."+name, unit, value)
	}
	var known []string
	for _, k := range keysOf(into) {
		if k, ok := strings.CutPrefix(wholeKey(of, k), table+"."); ok {
			known = append(known, k)
		}
	}
	return unknownKey(table+"."+name, name, known)
}

// unit returns the unit of the numbers of a list.
func (l *loader) unit(key string) (unit string) {
	if table, name, nested := strings.Cut(key, "."); nested && table != "system" {
		_, unit, _ = fieldNamed(l.table(table), name)
	}
	return unit
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
		g.Key = specKey(key)
		c.settings = append(c.settings, *g)
	}
	return err
}
