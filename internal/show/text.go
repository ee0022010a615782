// Package show prints documents of package doc: Text on a terminal, Markdown, CSV, and HTML with
// charts that page.js hands to ECharts (echarts/README.md). It knows nothing of results.
package show

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// Options are how much of a document Text prints.
type Options struct {
	Columns int  // of the terminal; 0 for no terminal, where a table is as wide as it is
	Details bool // print folded tables, all warnings and notes
	// Begun leaves out the title and the lead, because the command printed them before its work.
	Begun bool
	// Whole prints the charts' series and the files, too.
	Whole bool
	// More is the command that shows what is left out without Details, such as "sparseserve report R".
	More string
}

// widestWords is the width at which a cell of words is wrapped.
const widestWords = 80

// mostWarnings is how many warnings Text prints without Details. Serious ones are always printed.
const mostWarnings = 3

// Text prints a document: tables first, and warnings last, because a terminal shows its last lines.
func Text(w io.Writer, d *doc.Doc, o Options) error {
	b := new(bytes.Buffer) // written at once, because a writer may look at whole letters only
	o.Details = o.Details || o.Whole
	if !o.Begun {
		for _, line := range d.Lead {
			fmt.Fprintln(b, OneLine(line))
		}
		if len(d.Lead) > 0 {
			fmt.Fprintln(b)
		}
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
		if titled > 1 && t.Title != "" {
			if i > 0 {
				fmt.Fprintln(b)
			}
			fmt.Fprintln(b, OneLine(t.Title))
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

func (o Options) prints(t *doc.Table) bool { return o.Details || !t.Folded }

func (o Options) warnings(w io.Writer, all []doc.Warning) {
	heading, printed, left, notes := "\nWarnings:\n", 0, 0, 0
	for _, one := range all {
		switch {
		case o.Details:
		case one.Note:
			notes++
			continue
		case printed >= mostWarnings && !one.Serious:
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

// Table prints a table with its note and its legend. A terminal of columns that is too narrow wraps
// the widest column of words, and then leaves columns out and names them: the minor ones first.
func Table(w io.Writer, t *doc.Table, columns int) {
	if t.Note != "" {
		fmt.Fprintln(w, OneLine(t.Note))
	}
	shown := t.Shown()
	out := newFitted(w, columns)
	var heads table.Row
	var configs []table.ColumnConfig
	var minor, major []int
	for i, c := range shown {
		col := &t.Columns[c]
		head := OneLine(col.Name)
		if t.HasUnits() {
			head += "\n" + OneLine(col.Unit)
		}
		heads = append(heads, head)
		if col.Number {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight,
				AlignHeader: text.AlignRight})
		} else {
			configs = append(configs, table.ColumnConfig{Number: i + 1, WidthMax: widestWords,
				WidthMaxEnforcer: text.WrapSoft})
		}
		if col.Minor {
			minor = append([]int{i + 1}, minor...)
		} else if i > 1 {
			major = append([]int{i + 1}, major...)
		}
	}
	out.secondary = append(minor, major...)
	marks := make([]int, len(shown)) // widths, because digits stand below digits
	for j, c := range shown {
		for i := range t.Rows {
			marks[j] = max(marks[j], markOf(&t.Rows[i], c))
		}
	}
	out.AppendHeader(heads)
	for i := range t.Rows {
		if t.Rows[i].Ruled && i > 0 {
			out.AppendSeparator()
		}
		row := make(table.Row, len(shown))
		for j, c := range shown {
			row[j] = t.Rows[i].At(c) + strings.Repeat(" ", marks[j]-markOf(&t.Rows[i], c))
		}
		out.AppendRow(row)
	}
	out.SetColumnConfigs(configs)
	out.Render()
	for _, line := range t.Legend {
		fmt.Fprintln(w, OneLine(line))
	}
}

// markOf is the width of the mark of a cell of numbers.
func markOf(r *doc.Row, column int) int {
	if column >= len(r.Cells) {
		return 0
	}
	return utf8.RuneCountInString(r.Cells[column].Mark)
}
