package config

import (
	"math"
	"reflect"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

// flagText is the value of a --set flag. What it means depends on the type of
// the key it is for: strings need no quotes.
type flagText string

// Field is one key of a struct that a table is decoded into.
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

// fieldNamed returns the field of the struct that v points to that a key names.
func fieldNamed(v any, key string) (f reflect.Value, ok bool) {
	s := reflect.ValueOf(v).Elem()
	for _, f := range keyedIn(s.Type()) {
		if f.key == key {
			return s.FieldByIndex(f.index), true
		}
	}
	return f, false
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
		if key, _, _ := strings.Cut(f.Tag.Get("toml"), ","); key != "" && key != "-" && !f.Anonymous {
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
	if f, ok := fieldNamed(v, key); ok {
		return decodeValue(f, path+key, value)
	}
	return unknownKey(path+key, key, keysOf(v))
}

func unknownKey(path, key string, known []string) error {
	return &KeyError{Key: path, Reason: "unknown key" + DidYouMean(key, known)}
}

// decodeValue sets dst from a decoded TOML value or a flag's text. A single
// value stands for a list of one.
func decodeValue(dst reflect.Value, key string, value any) error {
	if text, ok := value.(flagText); ok {
		var err error
		list := dst.Kind() == reflect.Slice && elem(dst).Kind() != reflect.Slice
		if value, err = text.decode(list, elem(dst).Kind() == reflect.String); err != nil {
			return &KeyError{Key: key, Value: Show(text), Reason: "want " + typeName(dst)}
		}
	}
	if dst.Kind() != reflect.Slice {
		if !setScalar(dst, value) {
			return wrongType(dst, key, value)
		}
		return nil
	}
	if !setList(dst, value) {
		return wrongType(dst, key, value)
	}
	return nil
}

// setList sets a list, or a list of lists.
func setList(dst reflect.Value, value any) bool {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	out := reflect.MakeSlice(dst.Type(), len(list), len(list))
	for i, e := range list {
		set := setScalar
		if _, inner := e.([]any); inner && out.Index(i).Kind() == reflect.Slice {
			set = setList
		}
		if !set(out.Index(i), e) {
			return false
		}
	}
	dst.Set(out)
	return true
}

func setScalar(dst reflect.Value, value any) bool {
	switch v := value.(type) {
	case string:
		if dst.Kind() == reflect.String {
			dst.SetString(v)
			return true
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
			return setScalar(dst, int64(v))
		}
	}
	return false
}

func wrongType(dst reflect.Value, key string, value any) error {
	return &KeyError{Key: key, Value: Show(value), Reason: "want " + typeName(dst)}
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
		one = "an integer of 0 or more"
	case e.CanInt():
		one = "an integer"
	default:
		one = "a number"
	}
	if v.Kind() == reflect.Slice {
		return one + " or a list of them"
	}
	return one
}

// decode reads the text as TOML: as a list when it is in brackets, as a string
// when it is meant to be one and has no quotes.
func (t flagText) decode(list, text bool) (any, error) {
	s := strings.TrimSpace(string(t))
	if list && strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		out := []any{}
		for rest, more := s[1:len(s)-1], true; more; {
			var item string
			item, rest, more = cutUnquoted(rest, ',')
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			v, err := flagText(item).decode(false, text)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	if text && !strings.HasPrefix(s, `"`) && !strings.HasPrefix(s, `'`) {
		return s, nil
	}
	var doc struct{ V any }
	_, err := toml.Decode("V = "+s, &doc)
	return doc.V, err
}
