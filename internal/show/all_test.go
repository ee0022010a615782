package show

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// every is a document with each part that a document may have, all of different words.
func every() *doc.Doc {
	low, high := 0.5, 2.5
	return &doc.Doc{
		Title: "atitle", Lead: []string{"alead"}, Answers: []string{"ananswer"},
		Warnings: []warn.Warning{{Kind: warn.Rejected, Text: "aserious", Of: "aresult"},
			{Text: "awarning"}, {Kind: warn.Extrapolated, Text: "anote"}},
		Figures: []doc.Figure{{Title: "afigure", Caption: "acaption", Charts: []*doc.Chart{
			{Title: "achart", X: "anx", Y: "ay", Lines: []doc.Line{{Name: "aline",
				Points: []doc.Point{{X: 1, Y: 2, Sample: doc.Sample{Low: &low, High: &high}}}}}},
			{Y: "abary", Bars: []doc.Bar{{Name: "abar",
				Parts: []doc.Part{{Name: "apart", Value: 3}}}}},
			{Y: "aneffecty", Bars: []doc.Bar{{Group: "aneffect", Name: "asetting",
				Parts: []doc.Part{{Name: "aneffectpart", Value: -7}}}}},
			{Y: "aheaty", Heat: &doc.Heat{A: "aknob", B: "another",
				ValuesA: []string{"va"}, ValuesB: []string{"vb"}, Cells: []doc.HeatCell{{Value: 9}}}},
		}}},
		Tables: []doc.Table{
			{Title: "atable", Note: "atablenote", Legend: []string{"alegend"},
				Columns: []doc.Column{{Name: "acolumn"}, {Name: "anumber", Unit: "aunit", Number: true},
					{Name: "anempty"}},
				Rows: []doc.Row{{Cells: []doc.Cell{doc.Text("acell"), doc.Number(1234.56)}}}},
			{Title: "afolded", Folded: true, Columns: []doc.Column{{Name: "x"}},
				Rows: []doc.Row{{Cells: []doc.Cell{doc.Text("afoldedcell")}}}},
			{Title: "agrouped", Under: "aheading", Folded: true, Columns: []doc.Column{{Name: "x"}},
				Rows: []doc.Row{{Cells: []doc.Cell{doc.Text("agroupedcell")}}}},
		},
		Files: []doc.File{{Name: "afile", Text: "atext"}},
	}
}

// Every renderer shows every part of a document: the HTML has the terminal's words. A column
// without a cell is shown by none.
func TestEveryPartIsShown(t *testing.T) {
	words := strings.Fields(`alead ananswer aserious aresult awarning anote afigure achart aline ay
		abar aneffect asetting aknob atable atablenote alegend acolumn anumber aunit acell afolded afoldedcell
		agrouped agroupedcell afile atext`)
	for name, c := range map[string]struct {
		render func(io.Writer, *doc.Doc) error
		number string
	}{
		"text": {func(w io.Writer, d *doc.Doc) error {
			return Text(w, d, Options{Whole: true})
		}, "1235"},
		"markdown": {Markdown, "1235"},
		"html":     {HTML, "1235"},
		"csv":      {CSV, "1234.56"},
	} {
		var out bytes.Buffer
		if err := c.render(&out, every()); err != nil {
			t.Fatal(err)
		}
		for _, word := range append(words, c.number) {
			if !strings.Contains(out.String(), word) {
				t.Errorf("%s does not show %q:\n%.4000s", name, word, out.String())
			}
		}
		if strings.Contains(out.String(), "anempty") {
			t.Errorf("%s shows a column without a cell", name)
		}
	}
}

// Without details a terminal has what is not folded, the serious warnings and three in all, and
// where the others are.
func TestTextInShort(t *testing.T) {
	d := every()
	for range 4 {
		d.Warnings = append(d.Warnings, warn.Warning{Text: "afurther"})
	}
	var out bytes.Buffer
	if err := Text(&out, d, Options{More: "report R"}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, gone := range []string{"afolded", "agrouped", "anote", "afigure", "atext"} {
		if strings.Contains(text, gone) {
			t.Errorf("%q is printed:\n%s", gone, text)
		}
	}
	for _, want := range []string{"acell", "ananswer", "aserious\n    aresult", "awarning",
		"  and 3 more: report R\n", "1 note on extrapolation and sampling: report R\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q:\n%s", want, text)
		}
	}
	if strings.Count(text, "afurther") != 1 {
		t.Errorf("more than three warnings:\n%s", text)
	}
}

// whole fails a test where a write ends within a letter.
type whole struct{ t *testing.T }

func (w whole) Write(text []byte) (int, error) {
	if !utf8.Valid(text) {
		w.t.Errorf("a write of %d bytes ends within a letter", len(text))
	}
	return len(text), nil
}

// A long document is written in whole letters, because a writer may escape the parts of one.
func TestWritesWholeLetters(t *testing.T) {
	d := &doc.Doc{Lead: []string{"x" + strings.Repeat("µ", 10_000)}}
	for _, render := range []func(io.Writer, *doc.Doc) error{Markdown,
		func(w io.Writer, d *doc.Doc) error { return Text(w, d, Options{}) }} {
		if err := render(whole{t}, d); err != nil {
			t.Error(err)
		}
	}
}
