package cli

import (
	"io"
	"strings"

	"github.com/sparseserve/sparseserve/internal/show"
)

// plainWriter is what commands print to. Names of files, models, sets and sources come from
// others: what of them would control a terminal is escaped as in JSON. It keeps the first error, so
// that output that is lost is no success.
type plainWriter struct {
	w   io.Writer
	err error
}

func (p *plainWriter) Write(text []byte) (int, error) {
	_, err := io.WriteString(p.w, plain(string(text)))
	if p.err == nil {
		p.err = err
	}
	if err != nil {
		return 0, err
	}
	return len(text), nil
}

// plain escapes what controls a terminal.
func plain(text string) string { return show.Plain(text) }

// inCell escapes line ends and tabs, too, so that a name stays on its line and in its cell.
func inCell(name string) string { return show.OneLine(name) }

// oneLine keeps a text on its line, whatever names it has.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// unescaped is what data are written to, for other programs: it escapes on a terminal only.
func unescaped(w io.Writer) io.Writer {
	if p, ok := w.(*plainWriter); ok && !isTerminal(w) {
		return p.w
	}
	return w
}
