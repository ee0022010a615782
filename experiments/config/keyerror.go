package config

import (
	"fmt"
	"strconv"
	"strings"
)

// KeyError is an error about a key of a configuration, with its place and the reason.
type KeyError struct {
	Where  string // "file:line", a --set flag, or what built-in data it is
	Key    string
	Value  string // as TOML would print it; empty when the key itself is wrong
	Reason string
	With   []string // keys that it cannot stand with
	Err    error    // the error behind the reason; may be nil
}

func (e *KeyError) Error() string {
	s := e.Key
	if e.Value != "" {
		s += " = " + e.Value
	}
	switch {
	case strings.HasPrefix(e.Where, "--set "+e.Key+"="): // says key and value
		s = e.Where
	case e.Where != "":
		s = e.Where + ": " + s
	}
	return s + ": " + e.Reason
}

func (e *KeyError) Unwrap() error { return e.Err }

func quote(s string) string { return strconv.Quote(s) }

// Show formats a decoded TOML value as written in a file.
func Show(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case flagText:
		return string(v)
	case map[string]any, []map[string]any:
		return "a table"
	case []any:
		s := "["
		for i, e := range v {
			if i > 0 {
				s += ", "
			}
			s += Show(e)
		}
		return s + "]"
	case [][]float64:
		return strings.ReplaceAll(fmt.Sprint(v), " ", ", ")
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}
