package rows

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// values are the JSON objects of a file.
type values struct {
	dec         *jsontext.Decoder
	first, last *Object
	ahead       bool  // the first is the next record
	begin       int64 // of the value last read
}

// decoder reads JSON as Python writes it: names may be there twice and text may not be UTF-8.
func decoder(from io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(from, jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
}

// openValues reads the first object.
func (r *Reader) openValues() error {
	r.dec = decoder(r.text)
	_, err := r.object()
	if err == io.EOF {
		return &Error{File: r.Name, Problem: "no requests in it"}
	} else if err != nil {
		return err
	}
	r.first, r.ahead, r.Names = r.last, true, r.last.Names()
	return nil
}

// object returns the next object.
func (r *Reader) object() (Record, error) {
	if r.ahead {
		r.ahead = false
		return r.first, nil
	}
	kind := r.dec.PeekKind()
	for ; kind == ']' || kind == '[' && r.dec.StackDepth() == 0; kind = r.dec.PeekKind() {
		if _, err := r.dec.ReadToken(); err != nil {
			return nil, r.damage(err)
		}
	}
	if kind != '{' {
		raw, err := r.dec.ReadValue()
		if err == io.EOF {
			return nil, err
		} else if err != nil {
			return nil, r.damage(err)
		}
		r.start(len(raw))
		return nil, r.Fault(noObject(raw))
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, r.damage(err)
	}
	r.start(len("{"))
	if err := r.last.read(r.dec); err != nil {
		return nil, r.damage(err)
	}
	return r.last, nil
}

// start notes the begin of a value, of which n bytes are read.
func (r *Reader) start(n int) {
	r.begin, r.last = r.dec.InputOffset()-int64(n), &Object{}
	r.lines.drop(r.begin)
	r.line = r.lines.at(r.begin)
}

// damage returns a JSON syntax error with its line.
func (r *Reader) damage(err error) error {
	var known *Error
	var syntax *jsontext.SyntacticError
	l := &r.lines
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{File: r.Name, Line: l.at(syntax.ByteOffset),
			Problem: "not valid JSON: " + syntax.Err.Error()}
	}
	return &Error{File: r.Name, Line: l.at(l.read - l.skipped),
		Problem: "not valid JSON: ends within a value; the file seems cut short"}
}

// within adds the line of its key, and the index of the object in a list, to an error.
func (r *Reader) within(e *Error) {
	for _, f := range r.last.fields {
		name := string(r.last.text[f.name:f.value])
		rest, ok := strings.CutPrefix(e.Key, name)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			e.Line = r.lines.at(f.at)
		}
	}
	if r.dec.StackDepth() > 0 {
		_, n := r.dec.StackIndex(1)
		e.Key = strings.TrimSuffix(fmt.Sprintf("[%d].%s", n-1, e.Key), ".")
	}
}

func noObject(raw []byte) error {
	return Wrong("", string(raw[:min(len(raw), 80)]), "not a JSON object")
}
