package figures

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// drawPanel draws a panel from the text of a table.
func drawPanel(t *testing.T, p paperPanel, table string) (chart, error) {
	t.Helper()
	results := t.TempDir()
	p.From = "x"
	if err := os.Mkdir(filepath.Join(results, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(results, "x", "table.csv")
	if err := os.WriteFile(path, []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	all := readPapers()
	all.Quantity = map[string]*quantity{
		"at":    {Of: "at", Label: "At"},
		"value": {Of: "a b", Over: "per", Offset: 1, Scale: 10, Label: "Value (%)"},
		"a":     {Of: "a", Label: "A", Nonzero: true},
		"b":     {Of: "b", Label: "B"},
		"ends":  {Of: "a", Low: "low", High: "high", Scale: 2, Label: "A"},
	}
	pic, err := all.picture(&paperFigure{Names: map[string]string{"r": "Red"},
		Panel: []paperPanel{p}}, results)
	if err != nil {
		return chart{}, err
	}
	return pic.charts[0], nil
}

func TestPanelOfLines(t *testing.T) {
	c, err := drawPanel(t, paperPanel{X: "at", Y: "value", Series: "kind",
		Where:     map[string]any{"use": []any{int64(1), int64(2)}},
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
	if len(c.curves) != 2 || c.curves[0].series != "Red" || c.curves[1].series != publishedSeries {
		t.Fatalf("curves %+v", c.curves)
	}
	red, published := c.curves[0].points, c.curves[1].points
	if len(red) != 2 || red[0].x != 1 || red[0].mean != 20 || red[1].mean != 40 || red[1].runs != 2 {
		t.Errorf("points %+v", red)
	}
	if !c.curves[1].hollow || len(published) != 2 || published[0].mean != 60 || published[1].x != 2 {
		t.Errorf("published %+v", published)
	}
	if c.x != "At" || c.y != "Value (%)" || c.axis.high < 70 {
		t.Errorf("axes %q, %q, %+v", c.x, c.y, c.axis)
	}
}

func TestPanelOfBars(t *testing.T) {
	const table = "kind,seed,at,a,b\n" + "r,1,1,2,1\nr,2,1,4,3\ng,1,1,4,6\ng,2,1,12,6\n" +
		"r,1,2,0,1\nr,2,2,0,1\n"
	over := paperPanel{X: "at", Y: "a", Series: "kind", Bars: true,
		Published: map[string][]float64{"1": {1, 3}}}
	over.Over = &struct {
		Where map[string]any
		By    string
	}{map[string]any{"kind": "r", "at": int64(1)}, "seed"}
	c, err := drawPanel(t, over, table)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.groups) != 1 || c.groups[0].label != "1" || len(c.groups[0].bars) != 2 {
		t.Fatalf("groups %+v", c.groups)
	}
	if g := c.groups[0].bars[1]; g.series != "g" || g.height().mean != 2.5 || g.note != "" {
		t.Errorf("bar %+v", g)
	}
	if q := c.curves[0].points; len(q) != 2 || q[0].x != -0.2 || q[1].x != 0.2 || q[1].mean != 3 {
		t.Errorf("published %+v", q)
	}
	c, err = drawPanel(t, paperPanel{X: "kind", Y: "b a", Label: "Both", Bars: true,
		Where: map[string]any{"at": int64(1)}}, table)
	if err != nil {
		t.Fatal(err)
	}
	b := c.groups[0].bars[0]
	if c.groups[0].label != "Red" || len(b.parts) != 2 || b.parts[0].series != "B" ||
		b.parts[0].mean != 2 || b.total.mean != 5 || c.y != "Both" {
		t.Errorf("bar %+v of %q", b, c.y)
	}
}

// An interval that a row has is drawn in place of one over the rows.
func TestPanelOfIntervals(t *testing.T) {
	c, err := drawPanel(t, paperPanel{X: "at", Y: "ends"}, "at,a,low,high\n1,4,3,6\n2,4,,\n")
	if err != nil {
		t.Fatal(err)
	}
	q := c.curves[0].points
	if q[0].mean != 8 || q[0].low != 6 || q[0].high != 12 || q[1].low != 8 || q[1].high != 8 {
		t.Errorf("points %+v", q)
	}
	_, err = drawPanel(t, paperPanel{X: "at", Y: "ends"}, "at,a,low,high\n1,4,x,6\n")
	if err == nil || !strings.Contains(err.Error(), `row 1: low = "x": want a number`) {
		t.Errorf("error is %v", err)
	}
}

// Runs keep what makes a point hollow, and their settings and lists have keys.
func TestRecordsOfRuns(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "summary.json"), []byte(`[{"rate": 1e-1, "low": null,
		"settings": {"system.pipelined": true}, "seeds": [1, 2],
		"warnings": [{"kind": "waits_grow", "numbers": {"x": 1}}, {"kind": "other"}]}]`),
		0o644); err != nil {
		t.Fatal(err)
	}
	rows, err := readRecords(dir)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"rate": "0.1", "settings.system.pipelined": "true",
		"seeds": "1 2", "warnings.kind": "waits_grow other", "low": ""} {
		if got := rows[0].cells[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	d := drawing{paperPanel: &paperPanel{X: "q"}, figure: &paperFigure{}, x: &quantity{Of: "rate"},
		y: []*quantity{{Of: "rate"}}}
	if c, err := d.cell(&rows[0]); err != nil || !c.unstable || c.rejects || c.x != 0.1 {
		t.Errorf("cell %+v, %v", c, err)
	}
}

// Every look is of a series that is drawn, and every value of a paper has its marker.
func TestPapersHaveNothingUnused(t *testing.T) {
	all := readPapers()
	for i := range all.Figure {
		f := &all.Figure[i]
		pic, err := all.picture(f, filepath.Join("testdata", "paper"))
		if err != nil {
			t.Fatal(err)
		}
		series := pic.seriesOf()
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
			for _, one := range pic.charts[j].curves {
				if one.series == publishedSeries {
					got += len(one.points)
				}
			}
			if got != want {
				t.Errorf("%s: %d of %d published values are drawn in panel %d", f.Name, got, want, j)
			}
		}
	}
}
