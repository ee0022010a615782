package cli

import (
	"io"
	"strings"

	"github.com/sparseserve/sparseserve/internal/show"
)

// plainWriter is the output of commands. Names of files, models, sets and sources come from others,
// so it escapes control characters as in JSON. It keeps the first error, so lost output is not a
// success.
type plainWriter struct {
	w   io.Writer
	err error
}

func (p *plainWriter) Write(text []byte) (int, error) {
	_, err := io.WriteString(p.w, show.Plain(string(text)))
	if p.err == nil {
		p.err = err
	}
	if err != nil {
		return 0, err
	}
	return len(text), nil
}

// inCell also escapes line ends and tabs, so that a name stays in its line and cell.
func inCell(name string) string { return show.OneLine(name) }

// oneLine joins the lines of a text.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// unescaped returns a writer for data that other programs read: it escapes only on a terminal.
func unescaped(w io.Writer) io.Writer {
	if p, ok := w.(*plainWriter); ok && !isTerminal(w) {
		return p.w
	}
	return w
}
