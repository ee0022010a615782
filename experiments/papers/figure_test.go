package papers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/doc"
)

func unknown(...string) string { return "" }

// TestFiguresGolden holds the numbers of each figure, drawn from small fixed results.
func TestFiguresGolden(t *testing.T) {
	results := filepath.Join("testdata", "paper")
	all, err := Figures(results, nil, unknown)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	paths, err := figures.Draw(t.Context(), dir, all, "svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		table := strings.TrimSuffix(filepath.Base(path), "svg") + "csv"
		got, err := os.ReadFile(filepath.Join(dir, table))
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join(results, "golden-"+table)
		if *testkit.Update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || string(want) != string(got) {
			t.Errorf("%s differs from %s (%v)", table, golden, err)
		}
	}
	for _, name := range FigureNames() {
		if !slices.ContainsFunc(all, func(f doc.Figure) bool { return f.Name == name }) {
			t.Errorf("%s was not drawn", name)
		}
	}
}
