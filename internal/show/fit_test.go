package show

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// A table is no wider than the terminal, names omitted columns, and loses no word.
func TestTablesFitTheTerminal(t *testing.T) {
	print := func(columns int, minor ...int) string {
		one := doc.Table{Columns: doc.Columns("first", "words", "3rd", "4th|ms", "5th", "6th")}
		for _, i := range minor {
			one.Columns[i].Minor = true
		}
		one.Add("a", "wraps where it is too wide for the terminal", "12345678", "12345678", "",
			"12345678")
		one.Add("b", "short", "1", "2", "", "3")
		var out strings.Builder
		Table(&out, &one, columns)
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
		columns int
		minor   []int
		left    string
	}{
		{80, nil, ""},                  // the words are wrapped
		{60, []int{2, 3, 4}, "4th ms"}, // the 5th is empty
		{50, []int{2, 3}, "3rd, 4th ms"},
		{60, nil, "6th"},
	} {
		got := print(c.columns, c.minor...)
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
