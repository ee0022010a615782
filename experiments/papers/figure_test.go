package papers

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/show"
)

func unnamed(...[]config.Point) string { return "" }

// kept has the small fixed results that figures are drawn from.
var kept = &Studies{Dir: filepath.Join("testdata", "paper")}

// TestFiguresGolden holds the numbers of each figure, drawn from small fixed results.
func TestFiguresGolden(t *testing.T) {
	all, err := kept.Figures(t.Context(), nil, unnamed)
	if err != nil {
		t.Fatal(err)
	}
	paths, err := figures.Draw(t.Context(), t.TempDir(), all, "svg")
	if err != nil || len(paths) != len(all) {
		t.Fatalf("%d pictures of %d figures, %v", len(paths), len(all), err)
	}
	var numbers bytes.Buffer
	if err := show.CSV(&numbers, &doc.Doc{Figures: all}); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "figures.csv", numbers.String())
	for _, f := range figuresBook().Figure {
		if name := f.Name; !slices.ContainsFunc(all, func(f doc.Figure) bool { return f.Name == name }) {
			t.Errorf("%s was not drawn", name)
		}
	}
}
