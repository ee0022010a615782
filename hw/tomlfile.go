package hw

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

var indices = regexp.MustCompile(`\[\d+\]`)

// decodeTOML decodes data into v and returns the lines of its keys. A key that
// v does not have is an error with file, line and the nearest known key.
func decodeTOML(file string, data []byte, v any) (lineIndex, error) {
	md, err := toml.Decode(string(data), v)
	if err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			key := ""
			if pe.LastKey != "" {
				key = pe.LastKey + ": "
			}
			return nil, fmt.Errorf("%s:%d: %s%s", file, pe.Position.Line, key, pe.Message)
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	ix := indexLines(string(data))
	if unknown := md.Undecoded(); len(unknown) > 0 {
		key := unknown[0]
		line := 0
		for path, n := range ix {
			if indices.ReplaceAllString(path, "") == strings.Join(key, ".") && (line == 0 || n < line) {
				line = n
			}
		}
		msg := fmt.Sprintf("%s:%d: unknown key %q", file, line, key.String())
		if near := nearest(key[len(key)-1], knownKeys(reflect.TypeOf(v), key[:len(key)-1])); near != "" {
			msg += fmt.Sprintf(", did you mean %q?", near)
		}
		return nil, errors.New(msg)
	}
	return ix, nil
}

// knownKeys lists the keys that the table at path may hold.
func knownKeys(t reflect.Type, path []string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("toml")
		name, _, _ = strings.Cut(name, ",")
		switch {
		case name == "-":
		case f.Anonymous:
			if sub := knownKeys(f.Type, path); len(path) == 0 || sub != nil {
				keys = append(keys, sub...)
			}
		case len(path) == 0:
			keys = append(keys, name)
		case name == path[0]:
			return knownKeys(f.Type, path[1:])
		}
	}
	return keys
}

// nearest returns the candidate with the smallest edit distance to word, or
// nothing when none is close.
func nearest(word string, candidates []string) string {
	best, distance := "", max(2, len(word)/2)+1
	for _, c := range candidates {
		if d := editDistance(word, c); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// editDistance counts insertions, deletions and substitutions.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
