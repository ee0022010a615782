package show

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A table is no wider than the terminal, says what it leaves out, and loses no word.
func TestTablesFitTheTerminal(t *testing.T) {
	print := func(columns int, secondary ...int) string {
		var out strings.Builder
		table := newFitted(&out, columns)
		table.secondary = secondary
		fillTable(table)
		table.Render()
		return out.String()
	}
	whole := print(0)
	if strings.Contains(whole, "Not shown") || text.LongestLineLen(whole) < 80 {
		t.Errorf("no terminal:\n%s", whole)
	}
	if wide := print(200); wide != whole {
		t.Errorf("a wide terminal:\n%s", wide)
	}
	for _, c := range []struct {
		columns   int
		secondary []int
		left      string
	}{
		{80, nil, ""},                  // the words are wrapped
		{60, []int{5, 4, 3}, "4th ms"}, // the 5th is empty
		{50, []int{4, 3}, "3rd, 4th ms"},
		{60, nil, "6th"},
	} {
		got := print(c.columns, c.secondary...)
		table, note, _ := strings.Cut(got, "Not shown")
		if n := text.LongestLineLen(table); n > c.columns {
			t.Errorf("%d columns on a terminal of %d:\n%s", n, c.columns, got)
		}
		if (c.left != "") != strings.Contains(note, "columns: "+c.left+";") {
			t.Errorf("on %d columns:\n%s", c.columns, got)
		}
		for _, word := range strings.Fields("first wraps where it is too wide for the terminal") {
			if !strings.Contains(table, word) {
				t.Errorf("on %d columns %q is lost:\n%s", c.columns, word, got)
			}
		}
	}
}

// fillTable fills a table 95 columns wide with words and numbers.
func fillTable(t table.Writer) {
	t.AppendHeader(table.Row{"first", "words", "3rd", "4th", "5th", "6th"})
	t.AppendHeader(table.Row{"", "", "", "ms", "", ""})
	t.AppendRow(table.Row{"a", "wraps where it is too wide for the terminal", "12345678", "12345678",
		"", "12345678"})
	t.AppendRow(table.Row{"b", "short", "1", "2", "", "3"})
}
