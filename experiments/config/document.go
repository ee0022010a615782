package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
	"github.com/sparseserve/sparseserve/sim"
)

// document is one source of settings: a file, a --set flag, the settings of an axis or built-in
// data.
type document struct {
	settings []Setting // in the order of the text
	name     string
	text     string
	lines    tomlfile.Lines

	dir string // of the file

	fitted bool // to its model and the built-in mix; see neutral.go
}

// parseDocument reads TOML text.
func parseDocument(name, text string) (*document, error) {
	doc := &document{name: name, text: text}
	var tree map[string]any
	if _, err := toml.Decode(text, &tree); err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			line := parse.Position.Line
			if key, word := bareWord(text, line); key != "" {
				return nil, fmt.Errorf("%s:%d: %s = %s: is no TOML; put it in quotes, as in %s = %q",
					name, line, key, word, key[strings.LastIndexByte(key, '.')+1:], word)
			}
		}
		return nil, files.TOMLFault(name, text, err)
	}
	doc.lines = tomlfile.LinesOf(text)
	doc.add("", tree)
	return doc, nil
}

// add appends the settings of the value at a path. Tables and arrays of tables contain settings;
// other values, and empty tables, are settings. The path of an array's table has its index, as in
// systems[0].name.
func (d *document) add(at string, value any) {
	table, _ := value.(map[string]any)
	for _, key := range slices.SortedFunc(maps.Keys(table), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.lines[tomlfile.Join(at, a)], d.lines[tomlfile.Join(at, b)]),
			cmp.Compare(a, b))
	}) {
		d.add(tomlfile.Join(at, key), table[key])
	}
	list := tables(value)
	for i := range list {
		d.add(fmt.Sprintf("%s[%d]", at, i), list[i])
	}
	if at != "" && len(table)+len(list) == 0 {
		d.settings = append(d.settings, Setting{Key: at, Value: value, at: at, where: d.where(at)})
	}
}

// tables returns the tables of an array of tables; none for any other value.
func tables(value any) []map[string]any {
	switch list := value.(type) {
	case []map[string]any:
		return list
	case []any:
		all := make([]map[string]any, len(list))
		for i, e := range list {
			table, ok := e.(map[string]any)
			if !ok {
				return nil
			}
			all[i] = table
		}
		return all
	}
	return nil
}

// isTable reports whether a setting stands for a table without keys.
func (g *Setting) isTable() bool { _, ok := g.Value.(map[string]any); return ok }

// bareKey matches a line that sets a key to a word without quotes, a word with arguments, or a
// number with its unit.
var bareKey = regexp.MustCompile(`^\s*([A-Za-z0-9_.-]+)\s*=\s*` +
	`([A-Za-z][\w./-]*(?:\([^"'()]*\))?|[0-9][0-9.]* ?[A-Za-zµ%/][A-Za-z%/]*)\s*(?:#.*)?$`)

// bareWord returns the key (without its table) and the word of a line that lacks quotes; "" for any
// other line.
func bareWord(text string, line int) (key, word string) {
	all := strings.Split(text, "\n")
	if line < 1 || line > len(all) {
		return "", ""
	}
	m := bareKey.FindStringSubmatch(strings.TrimRight(all[line-1], "\r"))
	if m == nil || slices.Contains([]string{"true", "false", "inf", "nan"},
		strings.ToLower(m[2])) {
		return "", ""
	}
	key = m[1]
	above := strings.Join(append(slices.Clip(all[:line-1]), m[1]+" = 0"), "\n")
	for k, at := range tomlfile.LinesOf(above) {
		if at == line && len(k) > len(key) {
			key = k
		}
	}
	return key, m[2]
}

// parseFlag reads the key=value of one --set flag.
func parseFlag(set string) (*document, error) {
	name := "--set " + set
	key, value, ok := strings.Cut(set, "=")
	if key = strings.TrimSpace(key); !ok || key == "" {
		return nil, fmt.Errorf("%s: want key=value", name)
	}
	if strings.ContainsAny(set, "\r\n") {
		return nil, fmt.Errorf("--set %q: one key a flag, on one line", set)
	}
	if key == "systems" || strings.HasPrefix(key, "systems.") {
		return nil, fmt.Errorf("%s: systems can be written in a file only; --set system.KEY sets the "+
			"key of every system", name)
	}
	return &document{name: name, settings: []Setting{
		{Key: key, at: key, Value: flagText(value), where: name}}}, nil
}

// where returns the place of a key, or of the table that contains it.
func (d *document) where(at string) string {
	if i := slices.IndexFunc(d.settings, func(g Setting) bool { return g.at == at }); i >= 0 {
		return d.settings[i].where
	}
	if line := d.lines.Of(at); line > 0 && d.name != builtInDefault {
		return d.name + ":" + strconv.Itoa(line)
	}
	return d.name
}

// locate fills in the place of a KeyError that has none.
func (d *document) locate(err error) error {
	var key *KeyError
	if errors.As(err, &key) && key.Where == "" {
		key.Where = d.where(key.Key)
	}
	return err
}

// under lists the settings at a path and below it. Their keys are relative to the path.
func (d *document) under(path string) (all []Setting) {
	for _, g := range d.settings {
		rest, ok := strings.CutPrefix(g.at, path)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			g.Key = strings.TrimPrefix(rest, ".")
			all = append(all, g)
		}
	}
	return all
}

// complete reports whether a document spells out the keys of a system, as results do. Then it is
// unknown which keys the user set. Results of earlier versions miss a few keys.
func (d *document) complete() bool {
	return len(d.under("systems[0]")) > len(keysOf(&sim.Spec{}))/2
}

// relocate makes the paths of a document in folder dir relative to the working folder. A relative
// path is relative to dir or, if there is no such file, to the working folder.
func (d *document) relocate(dir string) {
	if d.dir = dir; dir == "" || dir == "." {
		return
	}
	for i := range d.settings {
		g := &d.settings[i]
		path, _ := g.Value.(string)
		names, may := pathKeys[g.ofSystem()]
		if !may || path == "" || filepath.IsAbs(path) || slices.Contains(names, path) {
			continue
		}
		if from := filepath.Join(dir, path); exists(from) {
			g.Value = from
		}
	}
}
