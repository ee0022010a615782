package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/internal/units"
)

// flagText is the value of a --set flag. Its interpretation depends on the type of its key: strings
// need no quotes.
type flagText string

// Field is one key of a struct that a table is decoded into. Keys of a nested struct are prefixed
// with the struct's key, as in selection.on.
type Field struct {
	Key   string
	Value reflect.Value
	Tag   reflect.StructTag
}

// FieldsOf lists the keys of the struct that v points to, in order.
func FieldsOf(v any) []Field {
	s := reflect.ValueOf(v).Elem()
	keyed := keyedIn(s.Type())
	fields := make([]Field, len(keyed))
	for i, f := range keyed {
		fields[i] = Field{f.key, s.FieldByIndex(f.index), f.tag}
	}
	return fields
}

// fieldNamed returns the field for a key in the struct that v points to, and the unit of its
// numbers.
func fieldNamed(v any, key string) (f reflect.Value, unit string, ok bool) {
	s := reflect.ValueOf(v).Elem()
	for _, f := range keyedIn(s.Type()) {
		if f.key == key {
			return s.FieldByIndex(f.index), f.tag.Get("unit"), true
		}
	}
	return f, "", false
}

func keyedIn(t reflect.Type) []keyedField {
	keyed, ok := keyedFields.Load(t)
	if !ok {
		keyed = keyedOf(t)
		keyedFields.Store(t, keyed)
	}
	return keyed.([]keyedField)
}

// keyedFields caches keyedOf by type.
var keyedFields sync.Map

// keyedField is a field of a struct that has a key.
type keyedField struct {
	key   string
	tag   reflect.StructTag
	index []int
}

func keyedOf(t reflect.Type) (fields []keyedField) {
	for _, f := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		part := len(f.Index) > 1 && t.Field(f.Index[0]).Tag.Get("toml") != ""
		switch {
		case key == "" || key == "-" || part: // a part lists its own
		case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[hw.Figure]():
			for _, inner := range keyedIn(f.Type) {
				name := inner.key
				if !strings.Contains(name, ".") { // else the key of a table of its own
					name = key + "." + name
				}
				fields = append(fields, keyedField{name, inner.tag, slices.Concat(f.Index, inner.index)})
			}
		default:
			fields = append(fields, keyedField{key, f.Tag, f.Index})
		}
	}
	return fields
}

// keysOf lists the names of the keys of the struct that v points to.
func keysOf(v any) []string {
	fields := FieldsOf(v)
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.Key
	}
	return keys
}

// decodeInto sets the field of the struct that v points to. It returns a
// KeyError without place when v has no such key or the value does not fit.
func decodeInto(v any, path, key string, value any) error {
	if f, unit, ok := fieldNamed(v, key); ok {
		return decodeValue(f, path+key, unit, value)
	}
	return unknownKey(path+key, key, keysOf(v))
}

// unknownKey suggests the key of that name in another table or at the top level, or else the
// nearest key of the same table. Outside of arrays of tables it gives the whole name.
func unknownKey(path, key string, known []string) error {
	if err := renamedKey(path, key); err != nil {
		return err
	}
	var elsewhere []string
	for _, k := range SettableKeys() {
		if k == key || strings.HasSuffix(k, "."+key) {
			elsewhere = append(elsewhere, strconv.Quote(k))
		}
	}
	if len(elsewhere) > 0 {
		return &KeyError{Key: path, Reason: "unknown key (did you mean " +
			strings.Join(elsewhere, " or ") + "?)"}
	}
	if table := strings.TrimSuffix(path, key); table != "" && !strings.Contains(table, "[") {
		for i := range known {
			known[i] = table + known[i]
		}
		key = path
	}
	return &KeyError{Key: path, Reason: "unknown key" + nearest.Meant(key, known)}
}

// decodeValue sets dst from a decoded TOML value or a flag's text. A single
// value stands for a list of one. A number may be a string with its unit, as in "100ms".
func decodeValue(dst reflect.Value, key, unit string, value any) error {
	given := value
	if text, ok := value.(flagText); ok {
		list := dst.Kind() == reflect.Slice && elem(dst).Kind() != reflect.Slice
		value = text.decode(list, elem(dst).Kind() == reflect.String)
	}
	set := setScalar
	if dst.Kind() == reflect.Slice {
		set = setList
	}
	if !set(dst, unit, value) {
		return wrongType(dst, key, unit, given)
	}
	return nil
}

// setList sets a list, or a list of lists whose columns have their own units.
func setList(dst reflect.Value, unit string, value any) bool {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	out := reflect.MakeSlice(dst.Type(), len(list), len(list))
	columns := strings.Split(unit, ", ")
	for i, e := range list {
		set := setScalar
		if _, inner := e.([]any); inner && out.Index(i).Kind() == reflect.Slice {
			set = setList
		} else if len(columns) > 1 {
			unit = columns[i%len(columns)]
		}
		if !set(out.Index(i), unit, e) {
			return false
		}
	}
	dst.Set(out)
	return true
}

func setScalar(dst reflect.Value, unit string, value any) bool {
	switch v := value.(type) {
	case string:
		if dst.Kind() == reflect.String {
			dst.SetString(v)
			return true
		}
		if x, err := units.Parse(v, unit); err == nil {
			return setScalar(dst, unit, x)
		}
	case bool:
		if dst.Kind() == reflect.Bool {
			dst.SetBool(v)
			return true
		}
	case int64:
		switch {
		case dst.CanInt() && !dst.OverflowInt(v):
			dst.SetInt(v)
			return true
		case dst.CanUint() && v >= 0 && !dst.OverflowUint(uint64(v)):
			dst.SetUint(uint64(v))
			return true
		case dst.CanFloat():
			dst.SetFloat(float64(v))
			return true
		}
	case float64:
		if dst.CanFloat() {
			dst.SetFloat(v)
			return true
		}
		// 1e6 is a fair way to write an integer.
		if whole := v == math.Trunc(v) && math.Abs(v) < 1<<53; whole {
			return setScalar(dst, unit, int64(v))
		}
	}
	return false
}

// wrongType returns an error with the type, the unit and an example of a key, and with the fault of
// a number that has a unit.
func wrongType(dst reflect.Value, key, unit string, value any) error {
	reason := "want " + typeName(dst)
	if e := elem(dst); e.CanInt() || e.CanUint() || e.CanFloat() {
		if example := units.Example(unit); example != "" {
			reason += fmt.Sprintf(", in %s or with its unit, as in %q", unit, example)
		}
		text := strings.Trim(Show(value), `"`)
		if text != "" && text[0] >= '0' && text[0] <= '9' {
			if _, err := units.Parse(text, unit); err != nil {
				reason = err.Error() + "; " + reason
			}
		}
	}
	return &KeyError{Key: key, Value: Show(value), Reason: reason}
}

func elem(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Slice {
		return reflect.Zero(v.Type().Elem())
	}
	return v
}

func typeName(v reflect.Value) string {
	one := ""
	switch e := elem(v); {
	case e.Kind() == reflect.Slice:
		return "a list of lists of numbers"
	case e.Kind() == reflect.String:
		one = "a string"
	case e.Kind() == reflect.Bool:
		one = "true or false"
	case e.CanUint():
		one = "an integer from 0 to 9223372036854775807"
	case e.CanInt():
		one = "an integer"
	default:
		one = "a number"
	}
	if v.Kind() == reflect.Slice {
		return one + " or a list of these"
	}
	return one
}

// decode parses the text as TOML: as a list if it is in brackets or contains a comma, as a string
// if a string is expected without quotes or the text is not TOML.
func (t flagText) decode(list, text bool) any {
	s := strings.TrimSpace(string(t))
	inside, bracketed := strings.CutPrefix(s, "[")
	if bracketed {
		inside, bracketed = strings.CutSuffix(inside, "]")
	}
	if !bracketed {
		inside = s
	}
	if items := SplitList(inside); list && (bracketed || len(items) > 1) {
		out := []any{}
		for _, item := range items {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, flagText(item).decode(false, text))
			}
		}
		return out
	}
	if text && !strings.HasPrefix(s, `"`) && !strings.HasPrefix(s, `'`) {
		return s
	}
	var doc struct{ V any }
	if _, err := toml.Decode("V = "+s, &doc); err != nil {
		return s
	}
	return doc.V
}

// SplitList splits a text at its commas outside quotes, parentheses and brackets.
func SplitList(s string) (items []string) {
	depth, from, open := 0, 0, byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case open == '"' && c == '\\':
			i++
		case open != 0:
			if c == open {
				open = 0
			}
		case c == '"' || c == '\'':
			open = c
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == ',' && depth == 0:
			items, from = append(items, s[from:i]), i+1
		}
	}
	return append(items, s[from:])
}
