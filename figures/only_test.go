package figures

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestEachExperimentDraws: the results of one experiment alone make a picture, for every
// experiment that a figure is drawn from.
func TestEachExperimentDraws(t *testing.T) {
	var names []string
	for _, f := range readPapers().Figure {
		names = append(names, f.results()...)
	}
	for _, name := range unique(names) {
		results := t.TempDir()
		if err := os.CopyFS(filepath.Join(results, name),
			os.DirFS(filepath.Join("testdata", "paper", name))); err != nil {
			t.Fatal(err)
		}
		files, err := DrawPaper(t.Context(), t.TempDir(), results, []string{name}, "svg")
		if err != nil || len(files) == 0 {
			t.Errorf("%s: drew %v, %v", name, files, err)
		}
	}
}

// TestOnlyDrawsWhatIsNamed: other figures, and the table of accuracy, are left as they are.
func TestOnlyDrawsWhatIsNamed(t *testing.T) {
	for _, c := range []struct {
		only []string
		want []string
	}{
		{[]string{"fig15"}, []string{"fig15.svg"}},
		{[]string{"fig10a"}, []string{"fig10.svg", "fig11.svg", "fig12.svg"}},
		{[]string{"fig11"}, []string{"fig11.svg"}},
		{[]string{"tableA1"}, []string{"tableA1.svg"}},
		{[]string{"psa-goodput", "fig08"}, []string{"fig08.svg", "psa-inside.svg"}},
	} {
		files, err := DrawPaper(t.Context(), t.TempDir(), filepath.Join("testdata", "paper"), c.only,
			"svg")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			got = append(got, filepath.Base(f))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("--only %v drew %v, want %v", c.only, got, c.want)
		}
	}
}

// TestPaperNames: every figure stands for its experiments, and an experiment for itself.
func TestPaperNames(t *testing.T) {
	for _, name := range PaperFigures() {
		if needs, ok := PaperExperiments(name); !ok || len(needs) == 0 && name != accuracyTable {
			t.Errorf("%s stands for %v, %v", name, needs, ok)
		}
	}
	if needs, ok := PaperExperiments("fig10a"); !ok || !slices.Equal(needs, []string{"fig10a"}) {
		t.Errorf("fig10a stands for %v, %v", needs, ok)
	}
	if needs, ok := PaperExperiments("fig99"); ok {
		t.Errorf("fig99 stands for %v", needs)
	}
}
