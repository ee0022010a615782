package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/show"
)

// printWhole prints a document with its lead and all its tables.
func printWhole(w io.Writer, d *doc.Doc) error {
	return show.Text(w, d, show.Options{Columns: terminalColumns(w), Details: true})
}

// printEither prints data as JSON, or the whole document.
func printEither(app *App, asJSON bool, data any, d *doc.Doc) error {
	if asJSON {
		return printJSON(app, data)
	}
	return printWhole(app.Stdout, d)
}

// printFlags choose the format of an answer without a folder.
type printFlags struct {
	JSON   bool   `name:"json" help:"Print JSON and nothing else."`
	Format string `enum:"text,md" default:"text" help:"How to print tables: text, or md for Markdown. Default: ${default}."`
}

func (f *printFlags) print(app *App, data any, d *doc.Doc) error {
	if f.Format == "md" && !f.JSON {
		return show.Markdown(app.Stdout, d)
	}
	return printEither(app, f.JSON, data, d)
}

// terminal returns the terminal that w writes to, or nil.
func terminal(w io.Writer) *os.File {
	if p, ok := w.(*plainWriter); ok {
		w = p.w
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// terminalColumns returns the width of the terminal that w writes to; 0 if w is not a terminal.
func terminalColumns(w io.Writer) int {
	f := terminal(w)
	if f == nil {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// printJSON prints an array, or an object, and nothing else.
func printJSON(app *App, v any) error {
	e := json.NewEncoder(app.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printNotes prints problems that a command found and repaired.
func printNotes(w io.Writer, notes []string) {
	for _, n := range notes {
		fmt.Fprintf(w, "note: %s\n", oneLine(n))
	}
}

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
