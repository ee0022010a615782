package hw

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/hw/lines"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/nearest"
)

// DecodeTOML decodes a file's text into v, a pointer to a struct. Errors have file and line.
func DecodeTOML(file, text string, v any) error { return decodeTOML(file, []byte(text), v) }

// decodeTOML decodes data into v, a pointer to a struct. An unknown key or a value of a wrong type
// is an error with file and line. The error suggests the nearest known key.
func decodeTOML(file string, data []byte, v any) error {
	key := decodedKey{reflect.TypeOf(v), string(data)}
	if known, ok := decoded.Load(key); ok {
		reflect.ValueOf(v).Elem().Set(reflect.ValueOf(known).Elem())
		unshare(reflect.ValueOf(v).Elem())
		return nil
	}
	err := decodeText(file, data, v)
	if err == nil {
		kept := reflect.New(key.into.Elem())
		kept.Elem().Set(reflect.ValueOf(v).Elem())
		unshare(kept.Elem())
		decoded.Store(key, kept.Interface())
	}
	return err
}

// decoded caches the decoded value of each text, because a run reads its machine's files several
// times.
var decoded sync.Map // decodedKey -> a pointer as v

type decodedKey struct {
	into reflect.Type
	text string
}

// unshare copies the slices within a value.
func unshare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			unshare(v.Field(i))
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		v.Set(own)
		for i := range v.Len() {
			unshare(v.Index(i))
		}
	}
}

func decodeText(file string, data []byte, v any) error {
	var parsed toml.Primitive // decoded twice below: parsing is most of the time
	meta, err := toml.Decode(string(data), &parsed)
	if err != nil {
		return files.TOMLFault(file, string(data), err)
	}
	var raw map[string]any
	if err := meta.PrimitiveDecode(parsed, &raw); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var found []mismatch
	matchTypes(raw, reflect.TypeOf(v).Elem(), "", &found)
	if len(found) > 0 {
		ix := lines.OfTOML(string(data))
		first := found[0]
		for _, m := range found[1:] {
			if a, b := ix.Of(m.path), ix.Of(first.path); a < b || a == b && m.path < first.path {
				first = m
			}
		}
		return fmt.Errorf("%s:%d: %s", file, ix.Of(first.path), first.msg)
	}
	if err := meta.PrimitiveDecode(parsed, v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// mismatch is a path in a file that does not fit the struct.
type mismatch struct {
	path, msg string
}

// matchTypes collects the mismatches between a decoded value and the type t.
func matchTypes(value any, t reflect.Type, path string, found *[]mismatch) {
	ok := true
	switch t.Kind() {
	case reflect.Struct:
		var table map[string]any
		if t == reflect.TypeFor[time.Time]() {
			if _, ok = value.(time.Time); !ok {
				msg := fmt.Sprintf("%s: want a date, as in 2026-11-09, got %v", path, value)
				*found, ok = append(*found, mismatch{path, msg}), true
			}
			break
		}
		if table, ok = value.(map[string]any); !ok {
			break
		}
		fields := fieldsOf(t)
		for key, v := range table {
			at := lines.Join(path, key)
			if ft, known := fields[key]; known {
				matchTypes(v, ft, at, found)
				continue
			}
			msg := fmt.Sprintf("unknown key %q", at)
			names := make([]string, 0, len(fields))
			for name := range fields {
				names = append(names, name)
			}
			sort.Strings(names)
			if near := nearest.Name(key, names); near != "" {
				msg += fmt.Sprintf(", did you mean %q?", near)
			}
			*found = append(*found, mismatch{at, msg})
		}
	case reflect.Slice:
		switch rows := value.(type) {
		case []any:
			for i, v := range rows {
				matchTypes(v, t.Elem(), fmt.Sprintf("%s[%d]", path, i), found)
			}
		case []map[string]any:
			for i, v := range rows {
				matchTypes(v, t.Elem(), fmt.Sprintf("%s[%d]", path, i), found)
			}
		default:
			ok = false
		}
	case reflect.String:
		_, ok = value.(string)
	case reflect.Bool:
		_, ok = value.(bool)
	case reflect.Int:
		_, ok = value.(int64)
	case reflect.Float64:
		if _, ok = value.(float64); !ok {
			_, ok = value.(int64)
		}
	default:
		panic("hw: no TOML type for " + t.String())
	}
	if !ok {
		msg := fmt.Sprintf("%s: want %s, got %v", path, kindNames[t.Kind()], value)
		*found = append(*found, mismatch{path, msg})
	}
}

var kindNames = map[reflect.Kind]string{
	reflect.Struct: "a table", reflect.Slice: "an array", reflect.String: "a string",
	reflect.Bool: "true or false", reflect.Int: "an integer", reflect.Float64: "a number",
}

// fieldsOf returns the keys of a struct and their types.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := structs.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	fields := map[string]reflect.Type{}
	tableFields(t, fields)
	structs.Store(t, fields)
	return fields
}

var structs sync.Map // reflect.Type -> map[string]reflect.Type

// tableFields collects the keys of a struct, including embedded structs.
func tableFields(t reflect.Type, fields map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			tableFields(f.Type, fields)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		if name != "" && name != "-" {
			fields[name] = f.Type
		}
	}
}
