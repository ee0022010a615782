package rows

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Error is an error in a file.
type Error struct {
	File    string
	Line    int    // from 1; 0 for the whole file
	Key     string // column or JSON key; may be empty
	Value   string // as written in the file; may be empty
	Problem string // what is wrong and how to fix it
}

// Error returns FILE:LINE: KEY = "VALUE": PROBLEM.
func (e *Error) Error() string {
	msg := e.File
	if e.Line > 0 {
		msg = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	switch {
	case e.Key != "" && e.Value != "":
		msg += fmt.Sprintf(": %s = %q", e.Key, Short(e.Value))
	case e.Key != "":
		msg += ": " + e.Key
	case e.Value != "":
		msg += fmt.Sprintf(": %q", Short(e.Value))
	}
	return msg + ": " + e.Problem
}

// ValueError is an error in one value. The caller that knows its position makes an Error from it.
type ValueError struct {
	Key, Value, Problem string
	at                  int64 // byte of a JSON value
}

// Wrong returns a ValueError.
func Wrong(key, value, problem string) error {
	return &ValueError{Key: key, Value: value, Problem: problem}
}

// Under puts the key of a ValueError below the key of an object.
func Under(parent string, err error) error {
	var v *ValueError
	if errors.As(err, &v) {
		v.Key = strings.TrimSuffix(parent+"."+v.Key, ".")
	}
	return err
}

// Error returns KEY = "VALUE": PROBLEM.
func (e *ValueError) Error() string {
	return e.Key + " = " + strconv.Quote(e.Value) + ": " + e.Problem
}

// In returns the error with a file and line; line 0 is the whole file.
func (e *ValueError) In(file string, line int) *Error {
	return &Error{File: file, Line: line, Key: e.Key, Value: e.Value, Problem: e.Problem}
}

// Short truncates a value to keep a message on one readable line.
func Short(value string) string {
	const most = 60
	if len(value) <= most {
		return value
	}
	return value[:most] + "..."
}

// Plural writes a count with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
