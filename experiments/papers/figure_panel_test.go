package papers

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// drawPanel draws a panel from the text of a table.
func drawPanel(t *testing.T, p panel, table string) (*doc.Chart, error) {
	t.Helper()
	results := t.TempDir()
	p.From = "x"
	if err := os.Mkdir(filepath.Join(results, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	testkit.Rewrite(t, filepath.Join(results, "x", "table.csv"), table)
	b := &book{Quantity: map[string]*quantity{
		"at":    {Of: "at", Label: "At"},
		"value": {Of: "a b", Over: "per", Offset: 1, Scale: 10, Label: "Value (%)"},
		"a":     {Of: "a", Label: "A"},
		"b":     {Of: "b", Label: "B"},
		"ends":  {Of: "a", Low: "low", High: "high", Scale: 2, Label: "A", Most: 11},
	}}
	f, err := (&Studies{Dir: results}).draw(t.Context(), b, &paperFigure{Caption: "Of x.",
		Names: map[string]string{"r": "Red"}, Panel: []panel{p}}, unnamed)
	if err != nil {
		return nil, err
	}
	return f.Charts[0], nil
}

func TestPanelOfLines(t *testing.T) {
	c, err := drawPanel(t, panel{X: "at", Y: "value", Series: "kind",
		Where:     filter{"use": []any{int64(1), int64(2)}},
		Published: map[string][]float64{"2": {70, 60}}}, `kind,use,seed,at,a,b,per
r,1,1,2,1,3,2
r,2,2,2,3,5,2
r,3,3,2,9,9,2
r,1,1,1,1,1,2
r,1,2,1,1,1,2
green,1,1,1,1,1,0
blue,1,1,1,1,1,2
`)
	if err != nil {
		t.Fatal(err)
	}
	// A value over 0 is none, and blue lacks a seed.
	if len(c.Lines) != 2 || c.Lines[0].Name != "Red" || c.Lines[1].Name != doc.Published {
		t.Fatalf("lines %+v", c.Lines)
	}
	red, published := c.Lines[0].Points, c.Lines[1].Points
	if len(red) != 2 || red[0].X != 1 || red[0].Y != 20 || red[1].Y != 40 || red[1].N != 2 {
		t.Errorf("points %+v", red)
	}
	if !c.Lines[1].Dots || len(published) != 2 || published[0].Y != 60 || published[1].X != 2 {
		t.Errorf("published %+v", published)
	}
	if c.X != "At" || c.Y != "Value (%)" {
		t.Errorf("axes %q, %q", c.X, c.Y)
	}
}

func TestPanelOfBars(t *testing.T) {
	const table = "kind,seed,at,a,b\n" + "r,1,1,2,1\nr,2,1,4,3\ng,1,1,4,6\ng,2,1,12,6\n"
	over := panel{X: "at", Y: "a", Series: "kind", Bars: true,
		Published: map[string][]float64{"1": {1, 3}}}
	over.Over = &struct {
		Where filter
		By    string
	}{filter{"kind": "r", "at": int64(1)}, "seed"}
	c, err := drawPanel(t, over, table)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Bars) != 2 || c.Bars[0].Group != "1" || c.Bars[0].Name != "Red" {
		t.Fatalf("bars %+v", c.Bars)
	}
	if b := &c.Bars[1]; b.Name != "g" || b.Value() != 2.5 || b.Note != "" || *b.Published != 3 {
		t.Errorf("bar %+v", b)
	}
	c, err = drawPanel(t, panel{X: "kind", Y: "b a", Label: "Both", Bars: true,
		Where: filter{"at": int64(1)}}, table)
	if err != nil {
		t.Fatal(err)
	}
	b := &c.Bars[0]
	if b.Group != "Red" || b.Name != "" || len(b.Parts) != 2 || b.Parts[0].Name != "B" ||
		b.Parts[0].Value != 2 || b.Value() != 5 || b.N != 2 || c.Y != "Both" {
		t.Errorf("bar %+v of %q", b, c.Y)
	}
}

// An interval that a row has is drawn in place of one over the rows, up to what is possible.
func TestPanelOfIntervals(t *testing.T) {
	c, err := drawPanel(t, panel{X: "at", Y: "ends"}, "at,a,low,high\n1,4,3,6\n2,4,,\n")
	if err != nil {
		t.Fatal(err)
	}
	q := c.Lines[0].Points
	if q[0].Y != 8 || *q[0].Low != 6 || *q[0].High != 11 || q[1].Low != nil {
		t.Errorf("points %+v", q)
	}
	_, err = drawPanel(t, panel{X: "at", Y: "ends"}, "at,a,low,high\n1,4,x,6\n")
	if err == nil || !strings.Contains(err.Error(), `row 1: low = "x": want a number`) {
		t.Errorf("error is %v", err)
	}
}

// Runs keep what makes a point hollow, and their settings and lists have keys.
func TestRecordsOfRuns(t *testing.T) {
	dir := t.TempDir()
	testkit.Rewrite(t, filepath.Join(dir, "summary.json"), `[{"rate": 1e-1, "low": null,
		"settings": {"selection.pipelined": true}, "seeds": [1, 2],
		"warnings": [{"kind": "waits_grow", "numbers": {"x": 1}}, {"kind": "other"}]}]`)
	rows, err := readRecords(dir)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"rate": "0.1", "selection.pipelined": "true",
		"seeds": "1 2", "warnings.kind": "waits_grow other", "low": ""} {
		if got := rows[0].cells[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	d := drawing{panel: &panel{X: "q"}, figure: &paperFigure{}, x: &quantity{Of: "rate"},
		y: []*quantity{{Of: "rate"}}}
	if c, err := d.cell(&rows[0]); err != nil || !c.Grows || c.Unstable || c.Rejects || c.x != 0.1 {
		t.Errorf("cell %+v, %v", c, err)
	}
	if _, err := readRecords(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}

// Every look belongs to a drawn series, and every value of a paper is there.
func TestFiguresHaveNothingUnused(t *testing.T) {
	b := figuresBook()
	for i := range b.Figure {
		f := &b.Figure[i]
		drawn, err := kept.draw(t.Context(), b, f, unnamed)
		if err != nil {
			t.Fatal(err)
		}
		var series []string
		eachSeries(drawn.Charts, func(name string, _ *string, _ *bool) { series = append(series, name) })
		for name := range f.Looks {
			if !slices.Contains(series, name) {
				t.Errorf("%s: a look of %q; there are %q", f.Name, name, series)
			}
		}
		for j, p := range f.Panel {
			want, got := 0, 0
			for _, values := range p.Published {
				want += len(values)
			}
			for _, l := range drawn.Charts[j].Lines {
				if l.Name == doc.Published {
					got += len(l.Points)
				}
			}
			for _, b := range drawn.Charts[j].Bars {
				if b.Published != nil {
					got++
				}
			}
			if got != want {
				t.Errorf("%s: %d of %d published values are drawn in panel %d", f.Name, got, want, j)
			}
		}
	}
}

// Names of one figure have one colour, and the paper's systems theirs in every figure.
func TestPaint(t *testing.T) {
	charts := []*doc.Chart{{Lines: []doc.Line{{Name: "new"}, {Name: "SparseServe"}, {Name: "mine"}}},
		{Bars: []doc.Bar{{Parts: []doc.Part{{Name: "new"}, {Name: "linears"}, {Name: "more"}}}}}}
	Paint(charts, map[string]int{"mine": 1})
	lines, parts := charts[0].Lines, charts[1].Bars[0].Parts
	sparse, _ := doc.Color(3)
	if lines[1].Color != sparse || lines[0].Color != parts[0].Color || !lines[2].Dashed ||
		parts[1].Color != Phases()[0].Color {
		t.Errorf("painted %+v and %+v", lines, parts)
	}
	seen := map[string]bool{sparse: true}
	for _, color := range []string{lines[0].Color, lines[2].Color, parts[2].Color} {
		if seen[color] {
			t.Errorf("two names are %s", color)
		}
		seen[color] = true
	}
}

// TestEachExperimentDraws: the results of one experiment alone make a picture, for every
// experiment that a figure is drawn from.
func TestEachExperimentDraws(t *testing.T) {
	var names []string
	for _, f := range figuresBook().Figure {
		names = append(names, f.results()...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		results := t.TempDir()
		if err := os.CopyFS(filepath.Join(results, name),
			os.DirFS(filepath.Join("testdata", "paper", name))); err != nil {
			t.Fatal(err)
		}
		all, err := (&Studies{Dir: results}).Figures(t.Context(), []string{name}, unnamed)
		if err != nil || len(all) == 0 {
			t.Errorf("%s: %d figures, %v", name, len(all), err)
		}
	}
}

// TestOnlyDrawsWhatIsNamed: other figures, and the table of accuracy, are left as they are.
func TestOnlyDrawsWhatIsNamed(t *testing.T) {
	for _, c := range []struct {
		only []string
		want []string
	}{
		{[]string{"fig15"}, []string{"fig15"}},
		{[]string{"fig10a"}, []string{"fig10", "fig11", "fig12"}},
		{[]string{"fig11"}, []string{"fig11"}},
		{[]string{"tableA1"}, []string{"tableA1"}},
		{[]string{"psa-goodput", "fig08"}, []string{"fig08", "psa-inside"}},
	} {
		all, err := kept.Figures(t.Context(), c.only, unnamed)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range all {
			got = append(got, f.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v drew %v, want %v", c.only, got, c.want)
		}
	}
}

// Every figure stands for its experiments, and an experiment for itself.
func TestNeeded(t *testing.T) {
	for _, name := range Names() {
		if needs, err := Needed([]string{name}); err != nil || len(needs) == 0 && name != accuracyTable {
			t.Errorf("%s stands for %v, %v", name, needs, err)
		}
	}
	itself := []string{"fig10a"}
	if needs, err := Needed(itself); err != nil || !slices.Equal(needs, itself) {
		t.Errorf("fig10a stands for %v, %v", needs, err)
	}
	if needs, err := Needed([]string{"fig99"}); err == nil {
		t.Errorf("fig99 stands for %v", needs)
	}
}

func TestFigureErrors(t *testing.T) {
	for _, c := range []struct{ name, folder, file, text, want string }{
		{"nothing", "fig99", "summary.json", "[]", "no results of a figure"},
		{"half a file", "fig15", "summary.json", `[{"system":"vl`, "fig15"},
		{"a column is missing", "fig04", "table.csv", "direction,engine,gb_s\nload,memcpy,1\n", `no column "block_tokens"`},
		{"not a number", "fig08", "table.csv", "window,overlap\n1,most\n", `row 1: overlap = "most": want a number`},
		{"no row", "fig08", "table.csv", "window,overlap\n", "no row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := t.TempDir()
			if err := os.Mkdir(filepath.Join(results, c.folder), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(results, c.folder, c.file), []byte(c.text),
				0o644); err != nil {
				t.Fatal(err)
			}
			_, err := (&Studies{Dir: results}).Figures(t.Context(), nil, unnamed)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}
