package figures

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// paperFigure is one figure of the papers, or one besides them that they do not
// have.
type paperFigure struct {
	name    string
	results []string // folders that it is drawn from
	draw    func(folders []string) (picture, error)
}

// paperFigures are in the order of the SparseServe paper, then of the PSA paper.
func paperFigures() []paperFigure {
	return []paperFigure{
		{"fig01", []string{"fig01"}, fig01},
		{"fig04", []string{"fig04"}, fig04},
		{"fig08", []string{"fig08"}, fig08},
		{"fig10", []string{"fig10a", "fig10b"}, fig10},
		{"fig11", []string{"fig10a", "fig10b"}, fig11},
		{"fig12", []string{"fig10a", "fig10b"}, fig12},
		{"fig13", []string{"fig13a", "fig13b"}, fig13},
		{"fig14", []string{"fig14a", "fig14b"}, fig14},
		{"fig15", []string{"fig15"}, fig15},
		{"fig16", []string{"fig16a", "fig16b"}, fig16},
		{"psa-fig2", []string{"psa-fig2"}, psaFig2},
		{"psa-fig5", []string{"psa-fig5"}, psaFig5},
		{"psa-fig6-lwm", []string{"psa-fig6a", "psa-fig6b"}, psaFig6},
		{"psa-fig6-llama", []string{"psa-fig6c", "psa-fig6d"}, psaFig6},
		{"psa-inside", []string{"psa-inside", "psa-goodput"}, psaInside},
		{"psa-parts", []string{"psa-parts"}, psaParts},
		{"eviction", []string{"eviction"}, eviction},
	}
}

// DrawPaper draws the figures of the paper whose results are there, each as
// PNG and CSV into dir, and returns the paths of the PNGs.
func DrawPaper(dir, results string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var pictures []picture
	for _, f := range paperFigures() {
		folders := make([]string, len(f.results))
		missing := false
		for i, name := range f.results {
			folders[i] = filepath.Join(results, name)
			missing = missing || !hasResults(folders[i])
		}
		if missing {
			continue
		}
		pic, err := f.draw(folders)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		pic.file = f.name
		pictures = append(pictures, pic)
	}
	if len(pictures) == 0 {
		return nil, fmt.Errorf("%s: no results of a figure of the paper", results)
	}
	table, err := tableA1()
	if err != nil {
		return nil, err
	}
	return writeAll(dir, append(pictures, table))
}

func hasResults(folder string) bool {
	for _, name := range []string{"summary.json", "plan.json", "table.csv"} {
		if _, err := os.Stat(filepath.Join(folder, name)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}
