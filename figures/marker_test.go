package figures

import (
	"fmt"
	"testing"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// However many lines there are, no two look alike. One has its colour's look wherever it stands.
func TestLooksDiffer(t *testing.T) {
	c := &doc.Chart{}
	for i := range 30 {
		l := doc.Line{Name: fmt.Sprint("line ", i)}
		l.Color, l.Dashed = doc.Color(i)
		c.Lines = append(c.Lines, l)
	}
	all, _ := looksOf(&doc.Figure{Charts: []*doc.Chart{c}})
	seen := map[string]string{}
	for name, l := range all {
		key := fmt.Sprint(l.color, l.dashes, l.marker(1))
		if before, ok := seen[key]; ok {
			t.Errorf("%s and %s are both %s", before, name, key)
		}
		seen[key] = name
	}
	c.Lines = c.Lines[3:]
	again, _ := looksOf(&doc.Figure{Charts: []*doc.Chart{c}})
	if fmt.Sprint(again["line 3"].marker(1)) != fmt.Sprint(all["line 3"].marker(1)) {
		t.Error("a line's marker depends on where it stands")
	}
}

// A mean of requests of which some were rejected is hollow, and the legend gives the reason.
func TestHollowMarkersAreExplained(t *testing.T) {
	l := doc.Line{Name: "a", Points: []doc.Point{{X: 1, Y: 1}, {X: 2, Y: 2}}}
	f := &doc.Figure{Charts: []*doc.Chart{{Lines: []doc.Line{l}}}}
	if _, legend := looksOf(f); len(legend) != 1 {
		t.Errorf("legend %+v", legend)
	}
	l.Points[1].Rejects = true
	if _, legend := looksOf(f); legend[1].name != "requests rejected" || !legend[1].hollow {
		t.Errorf("legend %+v", legend)
	}
	l.Points[0].Unstable = true
	if _, legend := looksOf(f); legend[1].name != "unstable queue or requests rejected" {
		t.Errorf("legend %+v", legend)
	}
	l.Points[0].Caveats = doc.Caveats{Grows: true}
	if _, legend := looksOf(f); legend[1].name != "waits grow or requests rejected" {
		t.Errorf("legend %+v", legend)
	}
}
