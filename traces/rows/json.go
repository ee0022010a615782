package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
)

// Values reads consecutive JSON values, or the elements of lists.
type Values struct {
	file  *File
	dec   *json.Decoder
	list  bool            // within a list
	index int             // in the list, of the value last read
	ahead json.RawMessage // read ahead for the next call
	names []string        // of the first value
	first *Object
	begin int64 // of the value last read
}

// NewValues returns the values of a file, of which there must be one.
func NewValues(f *File) (*Values, error) {
	v := &Values{file: f, dec: json.NewDecoder(f.text)}
	raw, err := v.Next()
	if err == io.EOF {
		err = &Error{File: f.Name, Problem: "no requests in it"}
	}
	if err != nil {
		return nil, err
	}
	v.ahead, v.names = raw, Keys(raw)
	if v.first, err = NewObject(raw); err != nil {
		v.first = &Object{}
	}
	return v, nil
}

// Names returns the keys of the first value; none if it is no object.
func (v *Values) Names() []string { return v.names }

// Has reports whether the first value has a name.
func (v *Values) Has(name string) bool { return v.first.raw(name) != nil }

// JSON returns true.
func (v *Values) JSON() bool { return true }

// Open returns false: a value that is cut short is an error.
func (v *Values) Open() bool { return false }

// Record returns the next value, an object. The error is io.EOF at the end.
func (v *Values) Record() (Record, error) {
	raw, err := v.Next()
	if err != nil {
		return nil, err
	}
	o, err := NewObject(raw)
	if err != nil {
		return nil, v.Fault(err)
	}
	return o, nil
}

// Next returns the next value. The error is io.EOF at the end.
func (v *Values) Next() (raw json.RawMessage, err error) {
	if v.ahead != nil {
		raw, v.ahead = v.ahead, nil
		return raw, nil
	}
	if err := v.brackets(); err != nil {
		return nil, v.damage(err)
	}
	if err := v.dec.Decode(&raw); err == io.EOF && !v.list {
		return nil, io.EOF
	} else if err != nil {
		return nil, v.damage(v.placed(err))
	}
	v.index++
	v.begin = v.dec.InputOffset() - int64(len(raw))
	v.file.lines.drop(v.begin)
	return raw, nil
}

// brackets skips begins and ends of lists, up to a value, the end or a syntax error.
func (v *Values) brackets() error {
	for {
		more := v.dec.More() // More also skips white space
		var next [1]byte
		v.dec.Buffered().Read(next[:])
		if ends := v.list && !more; !ends && (v.list || next[0] != '[') {
			return nil
		}
		if _, err := v.dec.Token(); err != nil {
			return err
		}
		v.list, v.index = !v.list, -1
	}
}

// placed corrects the offset of an error: the decoder does not count brackets, commas and the white
// space before them.
func (v *Values) placed(err error) error {
	var again *json.SyntaxError
	var raw json.RawMessage
	if errors.As(json.NewDecoder(v.dec.Buffered()).Decode(&raw), &again) {
		again.Offset += v.dec.InputOffset() - 1
		return again
	}
	return err
}

// damage returns a JSON syntax error with its line.
func (v *Values) damage(err error) error {
	var known *Error
	var syntax *json.SyntaxError
	l := &v.file.lines
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &syntax):
		return &Error{File: v.file.Name, Line: l.at(syntax.Offset), Problem: "not valid JSON: " +
			files.JSONWords(err)}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{File: v.file.Name, Line: l.at(l.read - l.skipped),
			Problem: "not valid JSON: ends within a value; the file seems cut short"}
	}
	return &Error{File: v.file.Name, Line: l.at(v.dec.InputOffset()), Problem: err.Error()}
}

// Source returns the file.
func (v *Values) Source() *File { return v.file }

// Line returns the line on which the value last read begins.
func (v *Values) Line() int { return v.file.lines.at(v.begin) }

// Fault returns err as an error of the value last read. In a list the key begins with its index.
func (v *Values) Fault(err error) *Error {
	e := faultOf(err, v.file.Name, v.Line())
	if e.Line = v.file.lines.at(v.begin + e.at); v.list {
		e.Key = strings.TrimSuffix(fmt.Sprintf("[%d].%s", v.index, e.Key), ".")
	}
	return e
}

// Decode decodes a value into a struct. Its error names the wrong key.
func Decode(raw []byte, into any) error {
	err := json.Unmarshal(raw, into)
	var wrong *json.UnmarshalTypeError
	start := string(raw[:min(len(raw), 80)])
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
		return &Error{Key: wrong.Field, Value: wrong.Value, at: wrong.Offset,
			Problem: "wrong type; a " + kind + " is needed"}
	case errors.As(err, &wrong):
		return Wrong("", start, "not a JSON object")
	}
	return Wrong("", start, "not valid JSON: "+files.JSONWords(err))
}

// Keys returns the sorted keys of an object; none if the text is not an object.
func Keys(text []byte) []string {
	var v map[string]json.RawMessage
	if json.Unmarshal(text, &v) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(v))
}
