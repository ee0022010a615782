package show

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// Widths for wrapping word cells: the maximum width, the minimum on a narrow terminal, and the
// minimum width of a column that is wrapped.
const (
	widestWords    = 80
	narrowestWords = 24
	wordy          = 30
)

// Table prints a table with its note and its legend. If the terminal has too few columns, it wraps
// the widest column of words, and then omits columns and names them, minor ones first.
func Table(w io.Writer, t *doc.Table, columns int) {
	if t.Note != "" {
		fmt.Fprintln(w, OneLine(t.Note))
	}
	shown := t.Shown()
	words, width := widest(t, shown)
	out := printed(t, shown, words, widestWords)
	over := func() int { return min(columns, 1) * (text.LongestLineLen(out) - columns) }
	if over() > 0 && words >= 0 {
		width = max(narrowestWords, min(width, widestWords)-over())
		out = printed(t, shown, words, width)
	}
	whole := shown
	for _, c := range secondary(t, shown) {
		if over() <= 0 {
			break
		}
		shown = slices.DeleteFunc(slices.Clone(shown), func(s int) bool { return s == c })
		out = printed(t, shown, words, width)
	}
	fmt.Fprintln(w, out)
	var left []string
	for _, c := range whole {
		if !slices.Contains(shown, c) {
			left = append(left, strings.TrimSpace(OneLine(t.Columns[c].Name+" "+t.Columns[c].Unit)))
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(w, "Not shown on a terminal of %d columns: %s; a pipe has all (| less -S)\n",
			columns, strings.Join(left, ", "))
	}
	for _, line := range t.Legend {
		fmt.Fprintln(w, OneLine(line))
	}
}

// secondary lists the columns that may be omitted: the minor ones from the last on, then others
// except the first two.
func secondary(t *doc.Table, shown []int) (columns []int) {
	for i, c := range shown {
		if !t.Columns[c].Minor && i > 1 {
			columns = append([]int{c}, columns...)
		}
	}
	for _, c := range shown {
		if t.Columns[c].Minor {
			columns = append([]int{c}, columns...)
		}
	}
	return columns
}

// widest returns the widest column of words and its width, or -1.
func widest(t *doc.Table, shown []int) (column, width int) {
	column, width = -1, wordy-1
	for _, c := range shown {
		for i := range t.Rows {
			if n := text.LongestLineLen(OneLine(t.Rows[i].At(c))); n > width {
				column, width = c, n
			}
		}
	}
	return column, width
}

// printed formats a table with the columns shown. The word column is wrapped at width.
func printed(t *doc.Table, shown []int, words, width int) string {
	out := table.NewWriter()
	style := table.StyleRounded
	style.Format.Header = text.FormatDefault
	out.SetStyle(style)
	out.SuppressTrailingSpaces()
	heads, configs := make(table.Row, len(shown)), make([]table.ColumnConfig, len(shown))
	marks := make([]int, len(shown)) // widths, because digits stand below digits
	for j, c := range shown {
		col, config := &t.Columns[c], &configs[j]
		if heads[j] = OneLine(col.Name); t.HasUnits() {
			heads[j] = OneLine(col.Name) + "\n" + OneLine(col.Unit)
		}
		*config = table.ColumnConfig{Number: j + 1, WidthMax: widestWords,
			WidthMaxEnforcer: text.WrapSoft}
		if col.Number {
			*config = table.ColumnConfig{Number: j + 1, Align: text.AlignRight,
				AlignHeader: text.AlignRight}
		}
		if c == words {
			config.WidthMax, config.WidthMaxEnforcer = width, text.WrapSoft
		}
		for i := range t.Rows {
			marks[j] = max(marks[j], markOf(&t.Rows[i], c))
		}
	}
	out.AppendHeader(heads)
	out.SetColumnConfigs(configs)
	for i := range t.Rows {
		if t.Rows[i].Ruled && i > 0 {
			out.AppendSeparator()
		}
		row := make(table.Row, len(shown))
		for j, c := range shown {
			row[j] = OneLine(t.Rows[i].At(c)) + strings.Repeat(" ", marks[j]-markOf(&t.Rows[i], c))
		}
		out.AppendRow(row)
	}
	return out.Render()
}

// markOf returns the width of the mark of a number cell.
func markOf(r *doc.Row, column int) int {
	if column >= len(r.Cells) {
		return 0
	}
	return utf8.RuneCountInString(r.Cells[column].Mark)
}
