package rows

import (
	"errors"
	"fmt"
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
	return strings.TrimPrefix(msg+": "+e.Problem, ": ")
}

// Wrong returns an error of one value. Fault of the reader adds its place.
func Wrong(key, value, problem string) error {
	return &Error{Key: key, Value: value, Problem: problem}
}

// Under puts the key of an error below the key of an object.
func Under(parent string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		e.Key = strings.TrimSuffix(parent+"."+e.Key, ".")
	}
	return err
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
