package files

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// No cell is a formula, and numbers are left alone.
func TestSafeCell(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "a", "a=b": "a=b", "-3.5": "-3.5", "+1": "+1", "-1e-9": "-1e-9", "-inf": "-inf",
		"=1+1": "'=1+1", "+cmd": "'+cmd", "-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1",
		"\r=1": "'\r=1", "\n=1": "'\n=1", "-": "'-", "＝1+1": "'＝1+1", "'=1": "''=1", "'a": "'a",
	} {
		if got := SafeCell(text); got != want {
			t.Errorf("SafeCell(%q) = %q, want %q", text, got, want)
		}
	}
}

// What is read is what was written, by either way of writing.
func TestCSVRoundTrip(t *testing.T) {
	word := rapid.StringOf(rapid.RuneFrom([]rune("'=+-@\t\n,\"a1＝ ")))
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SliceOfN(word, 2, 4).Draw(t, "row")
		var out bytes.Buffer
		w := NewCSVWriter(&out)
		if err := w.Write(row); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		cells := make([]string, len(row))
		for i, text := range row {
			cells[i] = CSVCell(text)
		}
		for _, text := range []string{out.String(), strings.Join(cells, ",") + "\n"} {
			got, err := NewCSVReader("t.csv", strings.NewReader(text)).ReadAll()
			if err != nil || len(got) != 1 || !slices.Equal(got[0], row) {
				t.Fatalf("%q is read as %q, %v; want %q", text, got, err, row)
			}
		}
	})
}

// A damaged table is an error with its file and line, in our words.
func TestCSVErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a,b\n1\n":          "t.csv:2: 1 cells where the first row has 2",
		"a,b\n1,\"2\n3,4\n": "t.csv:3: not valid CSV: a quote is left open or stands inside a cell",
		"a,b\n1,2\"\n":      "t.csv:2: not valid CSV: a quote is left open or stands inside a cell",
	} {
		_, err := NewCSVReader("t.csv", strings.NewReader(text)).ReadAll()
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := NewCSVReader("t.csv", strings.NewReader("")).Read(); err != io.EOF {
		t.Error(err)
	}
}
