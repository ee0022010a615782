package rows

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Values reads consecutive JSON objects, or the elements of lists.
type Values struct {
	file  *File
	dec   *jsontext.Decoder
	first *Object
	last  *Object
	ahead bool  // last, the first, is the next record
	begin int64 // of the value last read
}

// decoder reads JSON as Python writes it: names may be there twice and text may not be UTF-8.
func decoder(from io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(from, jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
}

// NewValues returns the objects of a file, of which there must be one.
func NewValues(f *File) (*Values, error) {
	v := &Values{file: f, dec: decoder(f.text)}
	first, err := v.next()
	if err == io.EOF {
		err = &Error{File: f.Name, Problem: "no requests in it"}
	}
	v.first, v.ahead = first, true
	return v, err
}

// Names returns the sorted keys of the first object.
func (v *Values) Names() []string { return v.first.Names() }

// Has reports whether the first object has a name.
func (v *Values) Has(name string) bool { return v.first.Value(name) != nil }

// JSON returns true.
func (v *Values) JSON() bool { return true }

// Open returns false: a value that is cut short is an error.
func (v *Values) Open() bool { return false }

// Record returns the next object. The error is io.EOF at the end.
func (v *Values) Record() (Record, error) {
	if v.ahead {
		v.ahead = false
		return v.first, nil
	}
	return v.next()
}

func (v *Values) next() (*Object, error) {
	kind := v.dec.PeekKind()
	for ; kind == ']' || kind == '[' && v.dec.StackDepth() == 0; kind = v.dec.PeekKind() {
		if _, err := v.dec.ReadToken(); err != nil {
			return nil, v.damage(err)
		}
	}
	if kind != '{' {
		raw, err := v.dec.ReadValue()
		if err == io.EOF {
			return nil, err
		} else if err != nil {
			return nil, v.damage(err)
		}
		v.start(len(raw))
		return nil, v.Fault(noObject(raw))
	}
	if _, err := v.dec.ReadToken(); err != nil {
		return nil, v.damage(err)
	}
	v.start(len("{"))
	if err := v.last.read(v.dec); err != nil {
		return nil, v.damage(err)
	}
	return v.last, nil
}

// start notes the begin of a value, of which n bytes are read.
func (v *Values) start(n int) {
	v.begin, v.last = v.dec.InputOffset()-int64(n), &Object{}
	v.file.lines.drop(v.begin)
}

// damage returns a JSON syntax error with its line.
func (v *Values) damage(err error) error {
	var known *Error
	var syntax *jsontext.SyntacticError
	l := &v.file.lines
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{File: v.file.Name, Line: l.at(syntax.ByteOffset),
			Problem: "not valid JSON: " + syntax.Err.Error()}
	}
	return &Error{File: v.file.Name, Line: l.at(l.read - l.skipped),
		Problem: "not valid JSON: ends within a value; the file seems cut short"}
}

// Source returns the file.
func (v *Values) Source() *File { return v.file }

// Line returns the line on which the value last read begins.
func (v *Values) Line() int { return v.file.lines.at(v.begin) }

// Fault returns err as an error of the value last read, on the line of its key. In a list the key
// begins with its index.
func (v *Values) Fault(err error) *Error {
	e := faultOf(err, v.file.Name, v.Line())
	for _, f := range v.last.fields {
		name := string(v.last.text[f.name:f.value])
		rest, ok := strings.CutPrefix(e.Key, name)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			e.Line = v.file.lines.at(f.at)
		}
	}
	if v.dec.StackDepth() > 0 {
		_, n := v.dec.StackIndex(1)
		e.Key = strings.TrimSuffix(fmt.Sprintf("[%d].%s", n-1, e.Key), ".")
	}
	return e
}

func noObject(raw []byte) error {
	return Wrong("", string(raw[:min(len(raw), 80)]), "not a JSON object")
}
