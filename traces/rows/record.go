package rows

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Record is a row of a table or a JSON object: values by name. A name goes on into nested objects
// behind a dot, and into the first element of a list as 0.
type Record interface {
	// Text returns a value as written, a string without its quotes; "" if it is missing or null.
	Text(name string) string
	// List returns the elements of a list; nil for any other value.
	List(name string) []jsontext.Value
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

// Object is a JSON object.
type Object struct {
	fields []field
	text   []byte // of all fields: name and value
	inner  map[string]*Object
}

// field has the offsets of a name, its value and their end in an object's text, and of the value in
// what the object was read from.
type field struct {
	name, value, end int
	at               int64
}

// NewObject parses an object. The error has no place.
func NewObject(raw []byte) (*Object, error) {
	d := decoder(bytes.NewBuffer(raw))
	if d.PeekKind() != '{' {
		return nil, noObject(raw)
	}
	o := &Object{}
	_, err := d.ReadToken()
	return o, cmp.Or(err, o.read(d))
}

// read reads the fields of an object, whose bracket is read.
func (o *Object) read(d *jsontext.Decoder) error {
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return err
		}
		f := field{name: len(o.text)}
		o.text, _ = jsontext.AppendUnquote(o.text, name)
		f.value = len(o.text)
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		o.text, f.at = append(o.text, value...), d.InputOffset()-int64(len(value))
		f.end = len(o.text)
		o.fields = append(o.fields, f)
	}
	_, err := d.ReadToken()
	return err
}

// Names returns the sorted names of all fields.
func (o *Object) Names() (names []string) {
	for _, f := range o.fields {
		names = append(names, string(o.text[f.name:f.value]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Value returns the value of a name; nil if it is missing.
func (o *Object) Value(name string) jsontext.Value {
	for _, f := range slices.Backward(o.fields) {
		if string(o.text[f.name:f.value]) == name {
			return o.text[f.value:f.end:f.end]
		}
	}
	head, rest, ok := strings.Cut(name, ".")
	if !ok {
		return nil
	}
	inner := o.inner[head]
	if inner == nil {
		raw := o.Value(head)
		if list := Elements(raw); len(list) > 0 {
			raw = append(append([]byte(`{"0":`), list[0]...), '}')
		}
		if inner, _ = NewObject(raw); inner == nil {
			return nil
		}
		if o.inner == nil {
			o.inner = map[string]*Object{}
		}
		o.inner[head] = inner
	}
	return inner.Value(rest)
}

// Text implements Record.
func (o *Object) Text(name string) string { return TextOf(o.Value(name)) }

// TextOf returns the text of a JSON value: a string without its quotes, any other value as
// written, and "" for null.
func TextOf(raw jsontext.Value) string {
	switch raw.Kind() {
	case 'n':
		return ""
	case '"':
		raw, _ = jsontext.AppendUnquote(nil, raw)
	}
	return string(raw)
}

// List implements Record.
func (o *Object) List(name string) []jsontext.Value { return Elements(o.Value(name)) }

// Each calls do for each object of a list; never if it is missing. Keys of an error are below the
// element: name[i].key.
func (o *Object) Each(name string, do func(*Object) error) error {
	list := o.List(name)
	if list == nil && o.Text(name) != "" {
		return Wrong(name, o.Text(name), "not a list")
	}
	for i, raw := range list {
		each, err := NewObject(raw)
		if err == nil {
			err = do(each)
		}
		if err != nil {
			return Under(fmt.Sprintf("%s[%d]", name, i), err)
		}
	}
	return nil
}

// Elements returns the elements of a list; nil for any other text.
func Elements(raw []byte) []jsontext.Value {
	d := decoder(bytes.NewBuffer(raw))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return nil
	}
	list := []jsontext.Value{}
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return nil
		}
		list = append(list, v.Clone())
	}
	return list
}

// tableRow is a row of a table.
type tableRow struct {
	r     *Reader
	cells []string
}

// Text implements Record.
func (t *tableRow) Text(name string) string {
	i, known := t.r.table.columns[name]
	if !known {
		i = t.r.column(name)
		t.r.table.columns[name] = i
	}
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(t.cells[i])
}

// List implements Record: a cell may hold a list in JSON.
func (t *tableRow) List(name string) []jsontext.Value {
	return Elements([]byte(t.Text(name)))
}
