package config

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
)

// Setting is one key of a configuration and the value that an axis gives it.
type Setting struct {
	Key   string // dotted, as in --set
	Value any    // as TOML decodes it
	line  int    // where the axis says so; 0 when that is not known
}

// axis is one [[axis]] table of a sweep: its settings at each of its values.
type axis struct{ values [][]Setting }

var axisKinds = []string{
	"grid", // all combinations of its keys' values, the first key slowest
	"zip",  // the n-th value of each key together
	"list", // list of points, each a table of keys
}

// parseAxes reads the [[axis]] tables of a sweep file.
func parseAxes(doc *document, value any) ([]axis, error) {
	tables, err := doc.tables("axis", value)
	if err != nil {
		return nil, err
	}
	var axes []axis
	placed := map[string]int{} // key -> the axis that sets it
	for i, table := range tables {
		path := fmt.Sprintf("axis[%d]", i)
		a, err := parseAxis(doc, path, table)
		if err != nil {
			return nil, doc.locate(err)
		}
		for _, s := range a.keys() {
			if j, ok := placed[s.Key]; ok {
				return nil, &KeyError{Where: doc.whereLine(s.line), Key: path,
					Reason: fmt.Sprintf("%s is set by axis[%d] too", s.Key, j)}
			}
			placed[s.Key] = i
		}
		axes = append(axes, a)
	}
	return axes, nil
}

func parseAxis(doc *document, path string, table map[string]any) (axis, error) {
	kinds := doc.keys(path+".", table)
	for _, kind := range kinds {
		if !slices.Contains(axisKinds, kind) {
			return axis{}, &KeyError{Key: path + "." + kind, Reason: "unknown key; want one of grid, zip, " +
				"list, as in grid." + kind + " = ..."}
		}
	}
	if len(kinds) != 1 {
		return axis{}, &KeyError{Key: path, Reason: "want one of grid, zip, list, as in [[axis]] with " +
			"grid.workload.rate = [0.1, 0.2]"}
	}
	kind := kinds[0]
	path += "." + kind
	if kind == "list" {
		return listAxis(doc, path, table[kind])
	}
	inner, err := doc.table(path, table[kind])
	if err != nil {
		return axis{}, err
	}
	columns, err := axisColumns(doc, path, inner)
	if err != nil {
		return axis{}, err
	}
	if kind == "zip" {
		return zipAxis(path, columns)
	}
	n := 1.0
	for _, column := range columns {
		n *= float64(len(column))
	}
	if err := checkSize(path, n); err != nil {
		return axis{}, err
	}
	return gridAxis(columns), nil
}

// Watch receives progress (points read, out of total) while points are read. Its error ends the
// reading. A nil Watch is not called.
type Watch func(done, of int) error

// Until returns a Watch that ends the reading with ctx.
func Until(ctx context.Context) Watch { return func(int, int) error { return ctx.Err() } }

// At reports progress: done points out of `of`.
func (w Watch) At(done, of int) error {
	if w == nil {
		return nil
	}
	return w(done, of)
}

// MostPoints is the maximum number of points of a sweep.
const MostPoints = 100_000

// checkSize refuses more points than MostPoints before they are made.
func checkSize(path string, points float64) error {
	if points <= MostPoints {
		return nil
	}
	return &KeyError{Key: path, Reason: fmt.Sprintf("makes %.6g points, a sweep has at most %d; "+
		"take out values, or make several sweeps", points, MostPoints)}
}

// axisColumns reads the lists of a grid or zip: one column per key.
func axisColumns(doc *document, path string, table map[string]any) ([][]Setting, error) {
	leaves, err := axisLeaves(doc, path, "", table)
	if err != nil {
		return nil, err
	}
	var columns [][]Setting
	for _, leaf := range leaves {
		list, ok := leaf.Value.([]any)
		if !ok {
			return nil, &KeyError{Key: path + "." + leaf.Key, Value: Show(leaf.Value),
				Reason: "want a list of values"}
		}
		if len(list) == 0 {
			return nil, &KeyError{Key: path + "." + leaf.Key, Value: "[]", Reason: "no value to run"}
		}
		column := make([]Setting, len(list))
		for i, v := range list {
			column[i] = Setting{leaf.Key, v, leaf.line}
		}
		columns = append(columns, column)
	}
	return columns, nil
}

func gridAxis(columns [][]Setting) axis {
	axes := make([]axis, len(columns))
	for i, column := range columns {
		for _, s := range column {
			axes[i].values = append(axes[i].values, []Setting{s})
		}
	}
	return axis{product(axes)}
}

func zipAxis(path string, columns [][]Setting) (axis, error) {
	a := axis{values: make([][]Setting, len(columns[0]))}
	for _, column := range columns {
		if len(column) != len(a.values) {
			return axis{}, &KeyError{Key: path + "." + column[0].Key,
				Reason: fmt.Sprintf("has %d values where %s has %d",
					len(column), columns[0][0].Key, len(a.values))}
		}
		for i, s := range column {
			a.values[i] = append(a.values[i], s)
		}
	}
	return a, nil
}

func listAxis(doc *document, path string, value any) (axis, error) {
	if list, ok := value.([]any); ok && len(list) == 0 {
		return axis{}, &KeyError{Key: path, Value: "[]", Reason: "no point to run"}
	}
	tables, err := doc.tables(path, value)
	if err != nil {
		return axis{}, err
	}
	var a axis
	for i, table := range tables {
		settings, err := axisLeaves(doc, fmt.Sprintf("%s[%d]", path, i), "", table)
		if err != nil {
			return axis{}, err
		}
		a.values = append(a.values, settings)
	}
	return a, nil
}

// axisLeaves lists the keys of the configuration that a table and its nested tables set, in
// document order.
func axisLeaves(doc *document, path, prefix string, table map[string]any) ([]Setting, error) {
	if len(table) == 0 {
		return nil, &KeyError{Key: path, Reason: "sets no key"}
	}
	var leaves []Setting
	for _, name := range doc.keys(path+".", table) {
		key, at := prefix+name, path+"."+name
		if inner, ok := table[name].(map[string]any); ok {
			below, err := axisLeaves(doc, at, key+".", inner)
			if err != nil {
				return nil, err
			}
			leaves = append(leaves, below...)
			continue
		}
		if known := SettableKeys(); !slices.Contains(known, key) {
			if now := renamed[key]; now != "" {
				return nil, &KeyError{Key: at, Reason: "is " + now + " now"}
			}
			return nil, &KeyError{Key: at, Reason: "no such key to set" + DidYouMean(key, known)}
		}
		leaves = append(leaves, Setting{key, table[name], doc.line(at)})
	}
	return leaves, nil
}

// settable is a table of keys that --set and axes can set, with the struct that they are decoded
// into.
type settable struct {
	name string
	v    any
}

// path returns the whole name of a key of the struct.
func (t settable) path(key string) string {
	if t.name == "system" {
		return specKey(key)
	}
	return t.name + "." + key
}

// SettableKeys lists the keys that --set and axes can set.
func SettableKeys() []string {
	keys := []string{"model", "gpu", "seed", "system.preset"}
	for _, t := range new(Point).tables() {
		for _, key := range keysOf(t.v) {
			if path := t.path(key); path != "system.name" {
				keys = append(keys, path)
			}
		}
	}
	figures, _ := hw.ChangeKeys()
	for _, key := range figures {
		keys = append(keys, "card."+key)
	}
	return keys
}

// keys lists the keys that the axis sets at any of its values, each with its first setting.
func (a *axis) keys() []Setting {
	var keys []Setting
	for _, settings := range a.values {
		for _, s := range settings {
			if !slices.ContainsFunc(keys, func(k Setting) bool { return k.Key == s.Key }) {
				keys = append(keys, s)
			}
		}
	}
	return keys
}

// withCards returns the axes with gpus instead of the cards that they set.
func withCards(axes []axis, gpus []string) []axis {
	var cards axis
	for _, gpu := range gpus {
		cards.values = append(cards.values, []Setting{{Key: "gpu", Value: gpu}})
	}
	all := []axis{cards}
	for _, a := range axes {
		var kept axis
		for _, settings := range a.values {
			settings = slices.DeleteFunc(slices.Clone(settings),
				func(s Setting) bool { return s.Key == "gpu" })
			listed := slices.ContainsFunc(kept.values,
				func(other []Setting) bool { return reflect.DeepEqual(other, settings) })
			if len(settings) > 0 && !listed {
				kept.values = append(kept.values, settings)
			}
		}
		if len(kept.values) > 0 {
			all = append(all, kept)
		}
	}
	return all
}

// product combines the axes, the first slowest. Without axes there is one combination without
// settings.
func product(axes []axis) [][]Setting {
	all := [][]Setting{nil}
	for _, a := range axes {
		var longer [][]Setting
		for _, head := range all {
			for _, settings := range a.values {
				longer = append(longer, slices.Concat(head, settings))
			}
		}
		all = longer
	}
	return all
}

// settingsDocument makes a document of settings, to be applied like a flag.
func settingsDocument(file *document, settings []Setting) *document {
	doc := &document{tree: map[string]any{}, name: file.name, lines: map[string]int{}}
	for _, s := range settings {
		nest(doc.tree, s.Key, s.Value)
		if s.line > 0 {
			doc.lines[s.Key] = s.line
		}
	}
	doc.relocate(file.dir)
	return doc
}

// nest sets a dotted key of a table, creating nested tables.
func nest(table map[string]any, key string, value any) {
	outer, inner, nested := strings.Cut(key, ".")
	if !nested {
		table[key] = value
		return
	}
	within, ok := table[outer].(map[string]any)
	if !ok {
		within = map[string]any{}
		table[outer] = within
	}
	nest(within, inner, value)
}

// without returns the document without some of its top-level keys.
func (d *document) without(keys ...string) *document {
	less := *d
	less.tree = maps.Clone(d.tree)
	for _, key := range keys {
		delete(less.tree, key)
	}
	return &less
}
