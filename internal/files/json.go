package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// ReadJSON reads a JSON file that a command has made.
func ReadJSON(path string, into any) error {
	text, err := ReadResult(path)
	if err != nil {
		return err
	}
	return ParseJSON(path, text, into)
}

// ParseJSON decodes the text of a JSON file. Its error has file, line and key.
func ParseJSON(path string, text []byte, into any) error {
	err := json.Unmarshal(text, into)
	line := func(offset int64) int {
		return 1 + bytes.Count(text[:min(max(int(offset), 0), len(text))], []byte("\n"))
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case len(bytes.TrimSpace(text)) == 0:
		return fmt.Errorf("%s: empty", path)
	case errors.As(err, &syntax):
		return fmt.Errorf("%s:%d: damaged, no valid JSON: %w", path, line(syntax.Offset), err)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("%s:%d: want %s, got %s", path, line(kind.Offset), kindOf(kind.Type),
			kind.Value)
	case errors.As(err, &kind):
		key := kind.Field[strings.LastIndexFunc(kind.Field, unicode.IsUpper)+1:]
		if _, inner, ok := strings.Cut(key, "."); ok && len(key) < len(kind.Field) {
			key = inner // what precedes is a type's name
		}
		return fmt.Errorf("%s:%d: %s: want %s, got %s", path, line(kind.Offset), key,
			kindOf(kind.Type), kind.Value)
	}
	return fmt.Errorf("%s: damaged: %w", path, err)
}

// kindOf is what JSON calls the values of a type.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "an integer"
}
