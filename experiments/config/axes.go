package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/nearest"
)

// axis is one [[axis]] table of a sweep: its settings at each of its values.
type axis struct{ values [][]Setting }

var axisKinds = []string{
	"grid", // all combinations of its keys' values, the first key slowest
	"zip",  // the n-th value of each key together
	"list", // list of points, each a table of keys
}

// parseAxes reads the [[axis]] tables of a sweep file.
func parseAxes(doc *document) (axes []axis, err error) {
	placed := map[string]int{} // key -> the axis that sets it
	for i := 0; ; i++ {
		path := fmt.Sprintf("axis[%d]", i)
		settings := doc.under(path)
		if len(settings) == 0 {
			break
		}
		a, err := parseAxis(doc, path, settings)
		if err != nil {
			return nil, doc.locate(err)
		}
		for _, s := range a.keys() {
			if j, ok := placed[s.Key]; ok {
				return nil, &KeyError{Where: s.where, Key: path,
					Reason: fmt.Sprintf("%s is set by axis[%d] too", s.Key, j)}
			}
			placed[s.Key] = i
		}
		axes = append(axes, a)
	}
	if other := doc.under("axis"); len(axes) == 0 && len(other) > 0 {
		value := "a table"
		if other[0].Key == "" {
			value = Show(other[0].Value)
		}
		return nil, doc.locate(&KeyError{Key: "axis", Value: value,
			Reason: "want an array of tables, [[axis]]"})
	}
	return axes, nil
}

func parseAxis(doc *document, path string, settings []Setting) (axis, error) {
	kind := ""
	for i, s := range settings {
		is := s.Key[:len(s.Key)-len(strings.TrimLeft(s.Key, "abcdefghijklmnopqrstuvwxyz"))]
		switch {
		case s.Key != "" && !slices.Contains(axisKinds, is):
			is, _, _ = strings.Cut(s.Key, ".")
			return axis{}, &KeyError{Key: path + "." + is, Reason: "unknown key; want one of grid, zip, " +
				"list, as in grid." + is + " = ..."}
		case s.Key == "" || i > 0 && is != kind:
			return axis{}, &KeyError{Key: path, Reason: "want one of grid, zip, list, as in [[axis]] with " +
				"grid.workload.rate = [0.1, 0.2]"}
		}
		kind = is
	}
	path += "." + kind
	if kind == "list" {
		return listAxis(doc, path)
	}
	columns, err := axisColumns(doc, path)
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

// listAxes removes from the documents each list given to a key of one value, and returns an axis
// per list. If several documents set a key, the last one counts. It leaves system.preset and the
// keys in listed alone, because their lists become runs elsewhere.
func listAxes(docs []*document) (axes []axis) {
	for i, doc := range docs {
		doc.settings = slices.DeleteFunc(slices.Clone(doc.settings), func(g Setting) bool {
			list := listOf(&g)
			if len(list) == 0 || g.at != g.Key {
				return false
			}
			for _, later := range docs[i+1:] {
				if lastOf(later.settings, g.Key) != nil {
					return true
				}
			}
			axes = append(axes, gridAxis([][]Setting{column(g, list)}))
			return true
		})
	}
	return axes
}

// listOf returns the list of values of a key that has a single number, text or truth value in a
// configuration; none if the setting is no such list.
func listOf(g *Setting) []any {
	kind := reflect.Float64 // of a figure in [card]
	if f, _, ok := fieldNamed(&Point{}, g.Key); ok {
		kind = f.Kind()
	} else if !strings.HasPrefix(g.Key, "card.") {
		return nil
	}
	if kind == reflect.Slice || kind == reflect.Map || slices.Contains(listed, g.Key) {
		return nil
	}
	value := g.Value
	if text, ok := value.(flagText); ok && strings.HasPrefix(string(text), "[") {
		value = text.decode(true, kind == reflect.String)
	}
	list, _ := value.([]any)
	return list
}

// column returns a setting at each value of a list.
func column(g Setting, list []any) []Setting {
	all := slices.Repeat([]Setting{g}, len(list))
	for i, v := range list {
		all[i].Value = v
	}
	return all
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
func axisColumns(doc *document, path string) (columns [][]Setting, err error) {
	settings, err := axisPoint(doc, path)
	if err != nil {
		return nil, err
	}
	for _, s := range settings {
		list, ok := s.Value.([]any)
		if !ok {
			return nil, &KeyError{Key: path + "." + s.Key, Value: Show(s.Value),
				Reason: "want a list of values"}
		}
		if len(list) == 0 {
			return nil, &KeyError{Key: path + "." + s.Key, Value: "[]", Reason: "no value to run"}
		}
		columns = append(columns, column(s, list))
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

func listAxis(doc *document, path string) (a axis, err error) {
	for i := 0; ; i++ {
		element := fmt.Sprintf("%s[%d]", path, i)
		if len(doc.under(element)) == 0 {
			break
		}
		settings, err := axisPoint(doc, element)
		if err != nil {
			return axis{}, err
		}
		a.values = append(a.values, settings)
	}
	if len(a.values) == 0 {
		return axis{}, &KeyError{Key: path, Value: Show(doc.under(path)[0].Value),
			Reason: "want a list of tables, one a point to run"}
	}
	return a, nil
}

// axisPoint lists the keys of the configuration that the table at path sets.
func axisPoint(doc *document, path string) ([]Setting, error) {
	settings, known := doc.under(path), SettableKeys()
	for i := range settings {
		s := &settings[i]
		switch now := renamed[s.Key]; {
		case s.Key == "" && s.isTable():
			return nil, &KeyError{Key: path, Reason: "sets no key"}
		case s.Key == "":
			return nil, &KeyError{Key: path, Value: Show(s.Value), Reason: "want a table"}
		case now != "":
			return nil, &KeyError{Key: s.at, Reason: "is " + now + " now"}
		case !slices.Contains(known, s.Key):
			return nil, &KeyError{Key: s.at, Reason: "no such key to set" + nearest.Meant(s.Key, known)}
		}
		s.at = s.Key
	}
	return settings, nil
}

// SettableKeys lists the keys that --set and axes can set.
func SettableKeys() []string {
	keys := slices.DeleteFunc(keysOf(new(Point)),
		func(key string) bool { return key == "system.name" })
	figures, _ := hw.ChangeKeys()
	for _, key := range figures {
		keys = append(keys, "card."+key)
	}
	return append(keys, "system.preset")
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
		cards.values = append(cards.values, []Setting{{Key: "gpu", Value: gpu, at: "gpu"}})
	}
	all := []axis{cards}
	for _, a := range axes {
		var kept axis
		for _, settings := range a.values {
			settings = slices.DeleteFunc(slices.Clone(settings),
				func(s Setting) bool { return s.Key == "gpu" })
			listed := slices.ContainsFunc(kept.values, func(other []Setting) bool {
				return reflect.DeepEqual(SettingsMap(other), SettingsMap(settings))
			})
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
	doc := &document{settings: slices.Clone(settings), name: file.name}
	doc.relocate(file.dir)
	return doc
}
