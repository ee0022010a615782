package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// ReadJSON reads a JSON file that a command made.
func ReadJSON(path string, into any) error {
	text, err := ReadResult(path)
	if err != nil {
		return err
	}
	return ParseJSON(path, text, into)
}

// ParseJSON decodes the text of a JSON file. Its error names file, line and key.
func ParseJSON(path string, text []byte, into any) error {
	err := json.Unmarshal(text, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case len(bytes.TrimSpace(text)) == 0:
		return fmt.Errorf("%s: empty", path)
	case errors.As(err, &syntax):
		line, column := placeOf(text, syntax.Offset-1)
		return fmt.Errorf("%s:%d: damaged, no valid JSON at column %d: %s", path, line, column,
			JSONWords(err))
	case errors.As(err, &kind):
		line, _ := placeOf(text, kind.Offset)
		return fmt.Errorf("%s:%d: %s", path, line, JSONWords(err))
	}
	return fmt.Errorf("%s: damaged: %w", path, err)
}

// placeOf returns line and column of a byte of a text, from 1.
func placeOf(text []byte, offset int64) (line, column int) {
	before := text[:min(max(int(offset), 0), len(text))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// kindOf returns the JSON name of a type.
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
