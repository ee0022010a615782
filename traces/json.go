package traces

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
)

// decodeJSON decodes one line into v and words errors for the person who has the file, not the
// struct.
func decodeJSON(line []byte, v any) error {
	err := json.Unmarshal(line, v)
	start := string(line[:min(len(line), 80)])
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field != "":
		kind := wrong.Type.Kind().String()
		switch wrong.Type.Kind() {
		case reflect.Slice:
			kind = "list"
		case reflect.Int64:
			kind = "whole number"
		}
		return &valueError{wrong.Field, wrong.Value, "wrong type; a " + kind + " is needed"}
	case errors.As(err, &wrong):
		return &valueError{"line", start, "not a JSON object"}
	}
	return &valueError{"line", start, "not valid JSON: " + files.JSONWords(err)}
}

// numeral is a JSON value as written, so that parseTokens and parseTime judge it and name its
// key. It is empty when the key is missing or null.
type numeral string

// UnmarshalJSON keeps the text, without the quotes of a number in quotes.
func (n *numeral) UnmarshalJSON(text []byte) error {
	if s := string(text); s != "null" {
		*n = numeral(strings.Trim(s, `"`))
	}
	return nil
}

// jsonKeys returns the keys of an object, sorted; none of what is no object.
func jsonKeys(text []byte) []string {
	var v map[string]json.RawMessage
	if json.Unmarshal(text, &v) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(v))
}
