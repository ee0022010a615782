package show

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// A table is no wider than the terminal, has at most eight columns, and loses no word: further
// columns follow in a part of their own, with the key in every part.
func TestTablesFitTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := doc.Table{Key: rapid.IntRange(0, 4).Draw(t, "key")}
		n := rapid.IntRange(1, 25).Draw(t, "columns")
		heads, row := make([]string, n), make([]any, n)
		for i := range heads {
			heads[i] = "head " + string(rune('a'+i))
			row[i] = strings.Repeat(string(rune('A'+i)), 5)
		}
		wordy := rapid.IntRange(0, n-1).Draw(t, "words")
		row[wordy] = "wraps where it is too wide for a terminal of few columns"
		one.Columns = doc.Columns(heads...)
		one.Add(row...)
		width := rapid.SampledFrom([]int{0, 90, 120, 200}).Draw(t, "width")
		var out strings.Builder
		Table(&out, &one, width)
		parts := strings.Count(out.String(), "╭")
		for line := range strings.Lines(out.String()) {
			if strings.Count(line, "│") > 9 || width > 0 && text.LongestLineLen(line) > width {
				t.Fatalf("a terminal of %d columns:\n%s", width, out.String())
			}
		}
		for i, head := range heads {
			want := 1
			if i < max(1, one.Key) {
				want = parts
			}
			if got := strings.Count(out.String(), " "+head+" "); got != want {
				t.Fatalf("%s is there %d times, want %d of %d parts:\n%s", head, got, want, parts,
					out.String())
			}
		}
		for word := range strings.FieldsSeq(strings.Join(texts(row), " ")) {
			if !strings.Contains(out.String(), word) {
				t.Fatalf("%q is lost:\n%s", word, out.String())
			}
		}
	})
}

func texts(row []any) (all []string) {
	for _, cell := range row {
		all = append(all, cell.(string))
	}
	return all
}
