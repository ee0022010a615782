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

// mostColumns is the maximum number of columns of a printed table. A reader compares no more.
const mostColumns = 8

// Table prints a table with its note and its legend. A table with more than mostColumns, or wider
// than the terminal's columns, is printed in parts that repeat its key. A row that has nothing in a
// further part is left out there.
func Table(w io.Writer, t *doc.Table, columns int) {
	if t.Note != "" {
		fmt.Fprintln(w, OneLine(t.Note))
	}
	shown := t.Shown()
	words, widest := widest(t, shown)
	rest := *t // rows of the part
	part := func(n int) (out string, over int) {
		out = printed(&rest, shown[:n], words, widestWords)
		over = min(columns, 1) * (text.LongestLineLen(out) - columns)
		if over > 0 && slices.Contains(shown[:n], words) {
			out = printed(&rest, shown[:n], words, max(narrowestWords, min(widest, widestWords)-over))
			over = text.LongestLineLen(out) - columns
		}
		return out, over
	}
	key := slices.DeleteFunc(slices.Clone(shown), func(c int) bool { return c >= max(1, t.Key) })
	key = key[:min(len(key), mostColumns-1)]
	for {
		n := min(len(shown), mostColumns)
		out, over := part(n)
		for over > 0 && n > len(key)+1 {
			n--
			out, over = part(n)
		}
		fmt.Fprintln(w, out)
		if n == len(shown) {
			break
		}
		further := shown[n:]
		shown = slices.Concat(key, further)
		rest.Rows = slices.DeleteFunc(slices.Clone(rest.Rows), func(r doc.Row) bool {
			return !slices.ContainsFunc(further, func(c int) bool { return r.At(c) != "" })
		})
	}
	for _, line := range t.Legend {
		fmt.Fprintln(w, OneLine(line))
	}
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
