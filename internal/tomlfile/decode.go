// Package tomlfile decodes the TOML files that users write, checks them, and encodes them. Errors
// name file, line and key.
package tomlfile

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/nearest"
)

// KeyError is an error of one key of a file.
type KeyError struct {
	Path string // such as linears[2].unit
	Err  error
}

func (e *KeyError) Error() string {
	if e.Path == "" {
		return e.Err.Error()
	}
	return e.Path + ": " + e.Err.Error()
}

func (e *KeyError) Unwrap() error { return e.Err }

// Wrong returns a KeyError.
func Wrong(path, format string, values ...any) error {
	return &KeyError{path, fmt.Errorf(format, values...)}
}

// Place adds the file, and the line of a KeyError, to an error of a file's text. A nil error stays.
func Place(file, text string, err error) error {
	if err == nil {
		return nil
	}
	var at *KeyError
	if errors.As(err, &at) {
		if n := LinesOf(text).Of(at.Path); n > 0 {
			return fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	return fmt.Errorf("%s: %w", file, err)
}

// Decode sets the fields of the struct that v points to from a file's text. Fields without a key in
// the text keep their values. An unknown key, for which the error suggests the nearest known one,
// or a value of a wrong type is an error.
func Decode(file, text string, v any) error {
	var tree map[string]any
	if _, err := toml.Decode(text, &tree); err != nil {
		return files.TOMLFault(file, text, err)
	}
	return Place(file, text, set(reflect.ValueOf(v).Elem(), tree, ""))
}

// set sets dst to a decoded value. path is its place in the file.
func set(dst reflect.Value, value any, path string) error {
	v, kind := reflect.ValueOf(value), dst.Kind()
	table, isTable := value.(map[string]any)
	switch {
	case isTable && kind == reflect.Struct:
		for _, key := range slices.Sorted(maps.Keys(table)) {
			f, at := field(dst, key), Join(path, key)
			if !f.IsValid() {
				return unknown(dst.Type(), at, key)
			}
			if err := set(f, table[key], at); err != nil {
				return err
			}
		}
	case v.Kind() == reflect.Slice && kind == reflect.Slice:
		rows := reflect.MakeSlice(dst.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			at := fmt.Sprintf("%s[%d]", path, i)
			if err := set(rows.Index(i), v.Index(i).Interface(), at); err != nil {
				return err
			}
		}
		dst.Set(rows)
	case v.CanInt() && (dst.CanInt() || dst.CanFloat()), v.Kind() == kind && v.CanConvert(dst.Type()):
		dst.Set(v.Convert(dst.Type()))
	case dst.Type() == reflect.TypeFor[time.Time]():
		return Wrong(path, "want a date, as in 2026-11-09, got %v", value)
	default:
		return Wrong(path, "want %s, got %v", kindNames[kind], value)
	}
	return nil
}

var kindNames = map[reflect.Kind]string{
	reflect.Struct: "a table", reflect.Slice: "an array", reflect.String: "a string",
	reflect.Bool: "true or false", reflect.Int: "an integer", reflect.Float64: "a number",
}

// Key returns the key of a field, or "".
func Key(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
	return strings.TrimPrefix(key, "-")
}

// Field returns the field for a key of the struct that v points to. It is invalid if there is none.
func Field(v any, key string) reflect.Value { return field(reflect.ValueOf(v).Elem(), key) }

// field returns the field of a struct for a key, or of a struct embedded in it.
func field(v reflect.Value, key string) (found reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case f.Anonymous:
			if inner := field(v.Field(i), key); inner.IsValid() {
				return inner
			}
		case Key(f) == key:
			return v.Field(i)
		}
	}
	return found
}

func unknown(t reflect.Type, path, key string) error {
	var known []string
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous && Key(f) != "" {
			known = append(known, Key(f))
		}
	}
	if near := nearest.Name(key, known); near != "" {
		return Wrong(path, "unknown key, did you mean %q?", near)
	}
	return Wrong(path, "unknown key")
}
