package config

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/sim/des"
)

// sweepKeys are the keys of a sweep file in addition to configuration keys.
var sweepKeys = []string{
	"base",    // experiment or file that the sweep starts from
	"axis",    // [[axis]] tables form a product, the first one slowest; each sets keys as --set does
	"goodput", // settings of the search for the largest rate
	"plan",    // what plan may buy
}

// ofSweeps is the reason against these keys in any other configuration.
const ofSweeps = "belongs in a file with axes, which simulate, goodput and plan run"

// Sweep is a set of experiments that differ in the keys of their axes.
type Sweep struct {
	Name string   // file name without extension, or the built-in name
	Axes []string // keys that its [[axis]] tables set, in their order
	// Variants are the runs at each combination of the axes' values: by system, number of replicas,
	// load and seed.
	Variants [][]Point
	Notes    []string // surprises of the first variant, in words
	Own      bool     // it has another model, card or trace than the built-in experiment
	Goodput  GoodputSearch
	Plan     *Plan   // nil: nothing is to be bought
	Unfit    []Unfit // of a plan
	// SeedsGiven is set if the user chose the seeds.
	SeedsGiven bool
	// RateGiven is set if the user chose workload.rate.
	RateGiven bool
	// StepsGiven is set if the user chose system.max_tokens or prefill.chunk_tokens.
	StepsGiven bool

	file  *document
	files []string // that were read
}

// LoadSweep reads a sweep. Layers, lowest first: the built-in default experiment, the file's bases,
// the file, --set flags, and each combination of the file's axes. A plain configuration is a sweep
// with one variant. A list of values of a key of one value is an axis too. Errors name the place,
// key and value.
func LoadSweep(ctx context.Context, path string, sets []string) (*Sweep, error) {
	return loadSweep(ctx, path, sets, false, nil)
}

// LoadPlan is LoadSweep for goodput and plan. Without a [plan] table a user's trace needs no rate,
// because the search finds one. gpus, if any, replace the cards of the file.
func LoadPlan(ctx context.Context, path string, sets []string, gpus ...string) (*Sweep, error) {
	return loadSweep(ctx, path, sets, true, nil, gpus...)
}

// loadSweep reads a sweep. Its axes are the axes of the file and, unless nil, varied.
func loadSweep(ctx context.Context, path string, sets []string, search bool, varied *axis,
	gpus ...string) (*Sweep, error) {
	layers, err := sweepLayers(path)
	if err != nil {
		return nil, err
	}
	file := layers[len(layers)-1]
	s := &Sweep{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)),
		file: file}
	axes, err := parseAxes(file)
	if err != nil {
		return nil, err
	}
	if len(gpus) > 0 {
		axes = withCards(axes, gpus)
	}
	flags, err := s.flags(file, axes, sets)
	if err != nil {
		return nil, err
	}
	docs := append(slices.Clone(layers), flags...)
	if varied == nil {
		axes = append(axes, listAxes(docs[len(layers)-1:])...)
	}
	buys := search && varied == nil &&
		slices.ContainsFunc(docs, func(doc *document) bool { return len(doc.under("plan")) > 0 })
	for _, a := range axes {
		for _, k := range a.keys() {
			s.Axes = append(s.Axes, k.Key)
			if buys && (OfLoad(k.Key) || strings.HasPrefix(k.Key, "slo.")) {
				return nil, fmt.Errorf("%s: %s: candidates of a [plan] serve one load within one "+
					"service level; leave it out of the axes", cmp.Or(k.where, file.name), k.Key)
			}
		}
	}
	named := file // that errors about what axes set are about
	if varied != nil {
		if len(axes) > 0 {
			return nil, file.locate(&KeyError{Key: "axis", Reason: "what varies is named by flags here; " +
				"leave the axes out"})
		}
		axes, named = []axis{*varied}, &document{name: varyFlag}
	}
	below, err := s.loadBelow(layers, flags, search, buys)
	if err != nil {
		return nil, err
	}
	below.varies = varied != nil
	for _, a := range axes {
		below.variants *= float64(len(a.values))
	}
	if err := checkSize("axis", below.variants); err != nil {
		return nil, file.locate(err)
	}
	level := des.Time(math.MaxInt64)
	if varied != nil {
		base, err := below.clone().finish()
		if err == nil {
			level, _, err = below.inputs.span(pointers(base))
		}
		if err != nil {
			return nil, err
		}
	}
	all := newEffects()
	for _, settings := range product(axes) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l := below.clone()
		if err := l.apply(settingsDocument(named, settings), true); err != nil {
			return nil, err
		}
		runs, err := l.finish()
		if err != nil {
			return nil, file.locate(err)
		}
		if l.buys {
			if err := l.checkPurchase(); err != nil {
				return nil, err
			}
			for _, u := range l.unfit {
				s.Unfit = append(s.Unfit, Unfit{settings, u.System, u.Reason})
			}
		}
		if varied != nil {
			least, most, err := below.inputs.span(pointers(runs))
			if err != nil {
				return nil, err
			}
			if least != level || most != level { // all are held to the level of the base
				hold(pointers(runs), level)
			}
		}
		for i := range runs {
			runs[i].Settings = settings
		}
		all.add(l.effects)
		if len(s.Variants) == 0 {
			s.Notes, s.Own, s.files = l.notes, l.own, l.files
		}
		s.Variants = append(s.Variants, runs)
		s.SeedsGiven = l.origin("seed") != builtInDefault
		s.RateGiven = l.chosen("workload.rate")
		s.StepsGiven = s.StepsGiven || l.stepsGiven
	}
	all.addSeveral(s, below)
	warnings := all.warnings()
	for _, runs := range s.Variants {
		for i := range runs {
			runs[i].Warnings = warnings
		}
	}
	if varied == nil {
		err = below.inputs.oneLevel(s.Runs())
	}
	return s, err
}

// Texts returns the texts of a sweep's or plan's file and of its bases, the deepest first.
func Texts(path string) (texts []string, err error) {
	layers, err := sweepLayers(path)
	for _, doc := range layers {
		texts = append(texts, doc.name+"\n"+doc.text)
	}
	return texts, err
}

// sweepLayers reads a sweep file and the chain of its bases, the deepest
// first.
func sweepLayers(path string) ([]*document, error) {
	var layers []*document
	for paths := []string{}; ; {
		if path == experiments.Default { // is under everything
			return slices.Insert(layers, 0, &document{name: path}), nil
		}
		doc, err := openDocument(path)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
		layers = slices.Insert(layers, 0, doc)
		if len(doc.under("axis")) > 0 && len(layers) > 1 {
			return nil, doc.locate(&KeyError{Key: "axis", Reason: "a base has no axes; " +
				paths[len(paths)-2] + " starts from this file"})
		}
		named := doc.under("base")
		if len(named) == 0 {
			return layers, nil
		}
		value := named[0].Value
		base, ok := value.(string)
		if !ok || base == "" {
			return nil, doc.locate(&KeyError{Key: "base", Value: Show(value),
				Reason: "want the name of an experiment or a file"})
		}
		if _, builtIn := experiments.Named(base); !builtIn && !filepath.IsAbs(base) {
			base = filepath.Join(filepath.Dir(path), base)
		}
		if slices.Contains(paths, base) {
			return nil, doc.locate(&KeyError{Key: "base", Value: Show(value), Reason: "is a base of itself"})
		}
		path = base
	}
}

// flags reads the --set flags of a sweep.
func (s *Sweep) flags(file *document, axes []axis, sets []string) ([]*document, error) {
	var flags []*document
	for _, set := range sets {
		key, _, _ := strings.Cut(set, "=")
		key = strings.TrimSpace(key)
		for _, a := range axes {
			for _, k := range a.keys() {
				if k.Key == key {
					return nil, fmt.Errorf("--set %s: %s is an axis of the sweep, at %s", set, key,
						k.where)
				}
			}
		}
		doc, err := parseFlag(set)
		if err != nil {
			return nil, err
		}
		flags = append(flags, doc)
	}
	return flags, nil
}

// loadBelow merges the documents below the axes.
func (s *Sweep) loadBelow(layers, flags []*document, search, buys bool) (*loader, error) {
	l := newLoader()
	l.search, l.buys, l.sweeps = search && !buys, buys, true
	l.models, l.gpus = slices.Contains(s.Axes, "model"), slices.Contains(s.Axes, "gpu")
	if err := l.base(); err != nil {
		return nil, err
	}
	for _, doc := range layers {
		if err := l.apply(doc, false); err != nil {
			return nil, err
		}
	}
	for _, doc := range flags {
		if err := l.apply(doc, true); err != nil {
			return nil, err
		}
	}
	if err := cmp.Or(l.cfg.Goodput.check(), l.cfg.Plan.check()); err != nil {
		return nil, l.place(err)
	}
	l.cfg.Goodput.Given = slices.ContainsFunc(l.settings,
		func(g Setting) bool { return strings.HasPrefix(g.Key, "goodput.") })
	s.Goodput = l.cfg.Goodput
	if l.plans() {
		s.Plan = &l.cfg.Plan
	}
	return l, nil
}
