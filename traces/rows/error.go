package rows

import (
	"fmt"
	"strconv"
)

// Error is a fault of a file.
type Error struct {
	File    string
	Line    int    // from 1; 0 when it concerns the whole file
	Key     string // column or JSON key; may be empty
	Value   string // as written in the file; may be empty
	Problem string // what is wrong and what to do
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

// ValueError is a fault of one value; whoever knows its place makes an Error of it.
type ValueError struct {
	Key, Value, Problem string
	at                  int64 // byte of a JSON value
}

// Wrong returns a ValueError.
func Wrong(key, value, problem string) error {
	return &ValueError{Key: key, Value: value, Problem: problem}
}

// Error returns KEY = "VALUE": PROBLEM.
func (e *ValueError) Error() string {
	return e.Key + " = " + strconv.Quote(e.Value) + ": " + e.Problem
}

// In returns the fault as one of a line of a file; 0: of the whole file.
func (e *ValueError) In(file string, line int) *Error {
	return &Error{File: file, Line: line, Key: e.Key, Value: e.Value, Problem: e.Problem}
}

// Short truncates a value so that a message is one readable line.
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
