package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/files"
)

// document is one source of configuration keys: a file, a --set flag or
// built-in data.
type document struct {
	tree  map[string]any
	name  string
	text  string
	lines hw.TOMLLines // nil when places within it mean nothing to a person

	dir    string   // of the file
	absent []string // files that it names and that are not there

	fitted bool // to its model and the built-in mix; see neutral.go
}

// parseDocument reads TOML text.
func parseDocument(name, text string) (*document, error) {
	doc := &document{name: name, text: text}
	if _, err := toml.Decode(text, &doc.tree); err != nil {
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
	doc.lines = hw.LinesOfTOML(text)
	return doc, nil
}

// bareKey matches a line that sets a key to a word without quotes, a word with arguments, or a
// number with its unit.
var bareKey = regexp.MustCompile(`^\s*([A-Za-z0-9_.-]+)\s*=\s*` +
	`([A-Za-z][\w./-]*(?:\([^"'()]*\))?|[0-9][0-9.]* ?[A-Za-zµ%/][A-Za-z%/]*)\s*(?:#.*)?$`)

// bareWord returns the key (without its table) and the word of a line that lacks quotes; "" for any
// other line.
func bareWord(text string, line int) (key, word string) {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return "", ""
	}
	m := bareKey.FindStringSubmatch(strings.TrimRight(lines[line-1], "\r"))
	if m == nil || slices.Contains([]string{"true", "false", "inf", "nan"},
		strings.ToLower(m[2])) {
		return "", ""
	}
	key = m[1]
	above := strings.Join(append(slices.Clip(lines[:line-1]), m[1]+" = 0"), "\n")
	for k, at := range hw.LinesOfTOML(above) {
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
	doc := &document{name: name, tree: map[string]any{}}
	nest(doc.tree, key, flagText(value))
	return doc, nil
}

// where returns the place of a key, or of the table that contains it.
func (d *document) where(key string) string {
	return d.whereLine(d.line(key))
}

// line returns the line of a key, or of the table that contains it; 0 if unknown.
func (d *document) line(key string) int { return d.lines.Of(key) }

// value returns the document's value of a dotted key; nil if the document does not set it.
func (d *document) value(key string) any {
	var at any = d.tree
	for part := range strings.SplitSeq(key, ".") {
		table, _ := at.(map[string]any)
		at = table[part]
	}
	return at
}

// whereLine describes a line of the document; for 0 the document only.
func (d *document) whereLine(line int) string {
	if line == 0 || d.lines == nil {
		return d.name
	}
	return d.name + ":" + strconv.Itoa(line)
}

// keys lists the keys of the table at path in the order of the document.
func (d *document) keys(path string, table map[string]any) []string {
	return slices.SortedFunc(maps.Keys(table), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.lines[path+a], d.lines[path+b]), cmp.Compare(a, b))
	})
}

// locate fills in the place of a KeyError that has none.
func (d *document) locate(err error) error {
	var key *KeyError
	if errors.As(err, &key) && key.Where == "" {
		key.Where = d.where(key.Key)
	}
	return err
}

// table returns the table under key, or an error if it is not a table.
func (d *document) table(key string, value any) (map[string]any, error) {
	table, ok := value.(map[string]any)
	if !ok {
		return nil, d.locate(&KeyError{Key: key, Value: Show(value), Reason: "want a table"})
	}
	return table, nil
}

// decode decodes a table of the document into v, and checks the ranges of its numbers.
func (d *document) decode(name string, v any) error {
	table, err := d.table(name, d.tree[name])
	if err != nil {
		return err
	}
	for _, key := range d.keys(name+".", table) {
		if err := decodeInto(v, name+".", key, table[key]); err != nil {
			return d.locate(err)
		}
	}
	if err := checkRanges(v, name+"."); err != nil {
		return d.locate(err)
	}
	return nil
}

// tables returns the array of tables under key.
func (d *document) tables(key string, value any) ([]map[string]any, error) {
	switch list := value.(type) {
	case []map[string]any:
		return list, nil
	case []any:
		out := make([]map[string]any, len(list))
		for i, e := range list {
			var err error
			if out[i], err = d.table(key, e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, d.locate(&KeyError{Key: key, Value: Show(value),
		Reason: "want an array of tables, [[" + key + "]]"})
}
