// Package show prints documents of package doc: Text on a terminal, Markdown, CSV, and HTML with
// charts that page.js hands to ECharts (echarts/README.md). It knows nothing of results.
package show

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// Options set how much of a document Text prints.
type Options struct {
	Columns int  // of the terminal; 0 for no terminal, where a table is as wide as it is
	Details bool // print folded tables, all warnings and notes
	// Whole also prints the titles, the charts' series and the files.
	Whole bool
	// More is the command that shows the parts omitted without Details, such as "sparseserve report
	// R".
	More string
}

// mostWarnings is the maximum number of warnings that Text prints without Details. Serious ones are
// always printed.
const mostWarnings = 3

// Text prints a document: tables first, and warnings last, because a terminal shows its last lines.
func Text(w io.Writer, d *doc.Doc, o Options) error {
	b := new(bytes.Buffer) // written at once, because a writer may look at whole letters only
	o.Details = o.Details || o.Whole
	if o.Whole && d.Title != "" {
		fmt.Fprintf(b, "%s\n\n", OneLine(d.Title))
	}
	for _, line := range d.Lead {
		fmt.Fprintln(b, OneLine(line))
	}
	if len(d.Lead) > 0 {
		fmt.Fprintln(b)
	}
	titled := 0
	for i := range d.Tables {
		if o.prints(&d.Tables[i]) {
			titled++
		}
	}
	folded := 0
	for i := range d.Tables {
		t := &d.Tables[i]
		if !o.prints(t) {
			folded++
			continue
		}
		if titled > 1 || o.Whole {
			heading(b, i, t)
		}
		Table(b, t, o.Columns)
	}
	for i, text := range d.Answers {
		if i == 0 {
			fmt.Fprintln(b)
		}
		fmt.Fprintln(b, OneLine(text))
	}
	o.warnings(b, d.Warnings)
	if o.Whole {
		for _, f := range sections(d) {
			fmt.Fprintf(b, "\n%s\n", OneLine(strings.TrimSpace(f.Title+". "+f.Caption)))
			for _, c := range f.Charts {
				fmt.Fprintln(b, " ", OneLine(series(c)))
			}
		}
		for _, f := range d.Files {
			fmt.Fprintf(b, "\n%s:\n%s\n", OneLine(f.Name), Plain(strings.TrimSuffix(f.Text, "\n")))
		}
	}
	_, err := b.WriteTo(w)
	return err
}

// heading prints the titles of table i.
func heading(w io.Writer, i int, t *doc.Table) {
	title := strings.TrimSuffix(t.Under+": "+t.Title, ": ")
	if title = strings.TrimPrefix(title, ": "); title == "" {
		return
	}
	if i > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, OneLine(title))
}

func (o Options) prints(t *doc.Table) bool { return o.Details || !t.Folded }

func (o Options) warnings(w io.Writer, all []warn.Warning) {
	heading, printed, left, notes := "\nWarnings:\n", 0, 0, 0
	for _, one := range all {
		switch {
		case o.Details:
		case one.Severity() == warn.Note:
			notes++
			continue
		case printed >= mostWarnings && one.Severity() != warn.Serious:
			left++
			continue
		}
		fmt.Fprintf(w, "%s  %s\n", heading, OneLine(one.Text))
		heading, printed = "", printed+1
		if one.Of != "" {
			fmt.Fprintln(w, "   ", OneLine(one.Of))
		}
	}
	if left > 0 {
		fmt.Fprintf(w, "  and %d more: %s\n", left, o.More)
	}
	if notes > 0 {
		fmt.Fprintf(w, "\n%s: %s\n", warn.NotesTitle(notes), o.More)
	}
}

// Plain escapes terminal control characters except line ends and tabs, and bytes that are not
// UTF-8. Names of files, models and sources come from others and might redraw a terminal.
func Plain(text string) string {
	if !strings.ContainsFunc(text, controls) {
		return text
	}
	var b strings.Builder
	for i, size := 0, 0; i < len(text); i += size {
		var r rune
		switch r, size = utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\u%04x`, text[i])
		case controls(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[i : i+size])
		}
	}
	return b.String()
}

func controls(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) ||
		r == utf8.RuneError)
}

// OneLine also escapes line ends and tabs, so that a name stays in its line and cell.
func OneLine(name string) string {
	if strings.ContainsAny(name, "\n\r\t") {
		name = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(name)
	}
	return Plain(name)
}
