package rows

import (
	"encoding/json"
	"strings"
)

// Record is a row of a table or a JSON object: values by name. A name goes on into nested objects
// behind a dot, and into the first element of a list as 0.
type Record interface {
	// Text returns a value as written, a string without its quotes; "" if it is missing or null.
	Text(name string) string
	// List returns the elements of a list; nil for any other value.
	List(name string) []json.RawMessage
}

// Find returns the first of alternative names, a|b, that has a value, and the value, but 0 only if
// no other has one. Without any it returns the first name and "".
func Find(r Record, names string) (name, text string) {
	if !strings.Contains(names, "|") {
		return names, r.Text(names)
	}
	for other := range strings.SplitSeq(names, "|") {
		found := r.Text(other)
		if name == "" || text == "" && found != "" || text == "0" && found != "" {
			name, text = other, found
		}
		if text != "" && text != "0" {
			break
		}
	}
	return name, text
}

// Has reports whether a record has one of alternative names.
func Has(names []string, alternatives string) bool {
	for name := range strings.SplitSeq(alternatives, "|") {
		for _, other := range names {
			if strings.EqualFold(name, other) {
				return true
			}
		}
	}
	return false
}

// Object is a JSON object.
type Object struct {
	values map[string]json.RawMessage
	nested map[string]*Object
}

// NewObject parses an object. The error has no place.
func NewObject(raw []byte) (*Object, error) {
	o := &Object{}
	return o, Decode(raw, &o.values)
}

// raw returns the value of a name, and nil for null.
func (o *Object) raw(name string) json.RawMessage {
	if raw, ok := o.values[name]; ok {
		return raw
	}
	head, rest, ok := strings.Cut(name, ".")
	if !ok || o.values[head] == nil {
		return nil
	}
	inner := o.nested[head]
	if inner == nil {
		var list []json.RawMessage
		inner = &Object{}
		if json.Unmarshal(o.values[head], &inner.values) != nil &&
			json.Unmarshal(o.values[head], &list) == nil && len(list) > 0 {
			inner.values = map[string]json.RawMessage{"0": list[0]}
		}
		if o.nested == nil {
			o.nested = map[string]*Object{}
		}
		o.nested[head] = inner
	}
	return inner.raw(rest)
}

// Text implements Record.
func (o *Object) Text(name string) string { return TextOf(o.raw(name)) }

// TextOf returns the text of a JSON value: a string without its quotes, any other value as
// written, and "" for null.
func TextOf(raw json.RawMessage) (text string) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		return text
	}
	return string(raw)
}

// List implements Record.
func (o *Object) List(name string) (list []json.RawMessage) {
	if json.Unmarshal(o.raw(name), &list) != nil {
		return nil
	}
	return list
}

// tableRow is a row of a table.
type tableRow struct {
	t     *Table
	cells []string
}

// Text implements Record.
func (r *tableRow) Text(name string) string {
	i, known := r.t.columns[name]
	if !known {
		i = r.t.column(name)
		r.t.columns[name] = i
	}
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(r.cells[i])
}

// List implements Record: a cell may hold a list in JSON.
func (r *tableRow) List(name string) (list []json.RawMessage) {
	if json.Unmarshal([]byte(r.Text(name)), &list) != nil {
		return nil
	}
	return list
}
