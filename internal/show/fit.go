package show

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// fitted is a table that fits the terminal that it is printed on: its widest column of words is
// wrapped, then columns are left out and named below. Elsewhere it is as wide as it is.
type fitted struct {
	table.Writer
	w         io.Writer
	columns   int   // of the terminal; 0: no terminal
	secondary []int // numbers of columns that may be left out, in this order; nil: from the last
	titles    []string
	widths    []int
	configs   []table.ColumnConfig
}

// Narrowest that a column of words becomes, and the least width of what counts as one.
const narrowest, wordy = 24, 30

func newFitted(w io.Writer, columns int) *fitted {
	t := &fitted{Writer: table.NewWriter(), w: w, columns: columns}
	style := table.StyleRounded
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.SuppressEmptyColumns()
	return t
}

func (t *fitted) AppendHeader(row table.Row, config ...table.RowConfig) {
	for i, cell := range row {
		if i >= len(t.titles) {
			t.titles = append(t.titles, "")
		}
		title := strings.ReplaceAll(fmt.Sprint(cell), "\n", " ")
		t.titles[i] = strings.TrimSpace(t.titles[i] + " " + title)
	}
	t.Writer.AppendHeader(row, config...)
}

func (t *fitted) AppendRow(row table.Row, config ...table.RowConfig) {
	row = slices.Clone(row)
	for i, cell := range row {
		if c, ok := cell.(string); ok {
			cell = OneLine(c)
		}
		row[i] = cell
		if i >= len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], text.LongestLineLen(fmt.Sprint(cell)))
	}
	t.Writer.AppendRow(row, config...)
}

func (t *fitted) SetColumnConfigs(configs []table.ColumnConfig) {
	t.configs = configs
	t.Writer.SetColumnConfigs(configs)
}

// Render prints the table.
func (t *fitted) Render() string {
	out := t.Writer.Render()
	over := func() int {
		if t.columns == 0 {
			return 0
		}
		return text.LongestLineLen(out) - t.columns
	}
	words := widest(t.widths)
	if i := words; over() > 0 && i >= 0 {
		t.change(i+1, func(c *table.ColumnConfig) {
			width := t.widths[i]
			if c.WidthMax > 0 {
				width = min(width, c.WidthMax)
			}
			c.WidthMax, c.WidthMaxEnforcer = max(narrowest, width-over()), text.WrapSoft
		})
		out = t.Writer.Render()
	}
	secondary := t.secondary
	for n := len(t.titles); n > 2 && t.secondary == nil; n-- {
		if n != words+1 {
			secondary = append(secondary, n)
		}
	}
	var left []int
	for _, n := range secondary {
		if over() <= 0 {
			break
		}
		t.change(n, func(c *table.ColumnConfig) { c.Hidden = true })
		if narrower := t.Writer.Render(); narrower != out { // it was not empty
			out, left = narrower, append(left, n)
		}
	}
	fmt.Fprintln(t.w, out)
	if len(left) > 0 {
		slices.Sort(left)
		var names []string
		for _, n := range left {
			names = append(names, t.titles[n-1])
		}
		fmt.Fprintf(t.w, "Not shown on a terminal of %d columns: %s; a pipe has all (| less -S)\n",
			t.columns, strings.Join(names, ", "))
	}
	return out
}

// widest returns the widest column of words, or -1.
func widest(widths []int) int {
	best := -1
	for i, w := range widths {
		if w >= wordy && (best < 0 || w > widths[best]) {
			best = i
		}
	}
	return best
}

// change changes how the column of a number is printed.
func (t *fitted) change(number int, by func(*table.ColumnConfig)) {
	i := slices.IndexFunc(t.configs, func(c table.ColumnConfig) bool { return c.Number == number })
	if i < 0 {
		i = len(t.configs)
		t.configs = append(t.configs, table.ColumnConfig{Number: number})
	}
	by(&t.configs[i])
	t.Writer.SetColumnConfigs(t.configs)
}
