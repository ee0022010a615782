package figures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/internal/files"
)

// paperFigure is one figure of the papers, or one besides them that they do not
// have.
type paperFigure struct {
	name    string
	results []string // folders that it is drawn from
	draw    func(folders []string) (picture, error)
}

// paperFigures are in the order of the SparseServe paper, then of the PSA and MInference papers.
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
		{"prefix", []string{"prefix"}, prefixes},
		{"mi-fig1b", []string{"mi-fig1b"}, miFig1b},
		{"mi-fig10", []string{"mi-fig10"}, miFig10},
		{"mi-fig11", []string{"mi-fig10"}, miFig11},
		{"mi-fig12", []string{"mi-fig10"}, miFig12},
		{"mi-serve", []string{"mi-serve"}, miServe},
	}
}

// accuracyTable is drawn of the paper's own numbers and needs no results.
const accuracyTable = "tableA1"

// PaperFigures names the figures.
func PaperFigures() []string {
	names := []string{accuracyTable}
	for _, f := range paperFigures() {
		names = append(names, f.name)
	}
	return names
}

// PaperExperiments lists what a name stands for: the experiments that a figure is drawn
// from; an experiment for itself. No figure is drawn from others: ok is false.
func PaperExperiments(name string) (experiments []string, ok bool) {
	ok = name == accuracyTable
	for _, f := range paperFigures() {
		if f.name == name {
			return f.results, true
		}
	}
	for _, f := range paperFigures() {
		if slices.Contains(f.results, name) {
			return []string{name}, true
		}
	}
	return nil, ok
}

// DrawPaper draws the figures of the papers whose results are there, each in every format
// and as CSV into dir, and returns the paths of the pictures. Names of figures or of
// experiments choose figures; none chooses all. A figure of several experiments is drawn
// of those that are there.
func DrawPaper(ctx context.Context, dir, results string, only []string, formats ...string) (
	[]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var pictures []picture
	for _, f := range paperFigures() {
		if len(only) > 0 && !slices.Contains(only, f.name) &&
			!slices.ContainsFunc(f.results, func(r string) bool { return slices.Contains(only, r) }) {
			continue
		}
		there := f.there(results)
		if len(there) == 0 {
			continue
		}
		pic, err := f.draw(there)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		pic.file = f.name
		if pic.caption == "" {
			if pic.caption, err = captionOfFolders(there); err != nil {
				return nil, err
			}
		}
		pictures = append(pictures, pic)
	}
	if table := len(only) == 0 && len(pictures) > 0 || slices.Contains(only, accuracyTable); table {
		pic, err := tableA1()
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, pic)
	}
	if len(pictures) == 0 {
		of := "a figure of the paper"
		if len(only) > 0 {
			of = strings.Join(only, ", ")
		}
		return nil, fmt.Errorf("%s: no results of %s", results, of)
	}
	return writeAll(ctx, dir, pictures, formats)
}

// there lists the folders of a figure that hold results.
func (f *paperFigure) there(results string) []string {
	var there []string
	for _, name := range f.results {
		if folder := filepath.Join(results, name); hasResults(folder) {
			there = append(there, folder)
		}
	}
	return there
}

// captionOfFolders says what the runs and the goodput searches of folders were made with.
func captionOfFolders(folders []string) (string, error) {
	var runs []Run
	for _, folder := range folders {
		switch {
		case hasFile(folder, "summary.json"):
			more, err := Read(folder)
			if err != nil {
				return "", err
			}
			runs = append(runs, more...)
		case hasFile(folder, "plan.json"):
			plan, err := readPlan(folder)
			if err != nil {
				return "", err
			}
			for _, c := range plan {
				for _, seed := range c.Seeds {
					runs = append(runs, Run{System: c.System, Model: c.Model, GPU: c.GPU, Seed: seed})
				}
			}
		}
	}
	if len(runs) == 0 {
		return studyCaption(folders[0])
	}
	return captionOf(runs, abscissaOf(runs)), nil
}

// studyCaption says what a study was made with: the title of its study.toml, a comment in
// the first line, and the keys that a reader asks for.
func studyCaption(folder string) (string, error) {
	var study struct {
		Model    string   `toml:"model"`
		GPU      string   `toml:"gpu"`
		Requests int      `toml:"requests"`
		Seeds    []uint64 `toml:"seeds"`
	}
	path := filepath.Join(folder, "study.toml")
	text, err := files.ReadResult(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		_, err = toml.Decode(string(text), &study)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	var words []string
	if first, _, _ := strings.Cut(string(text), "\n"); strings.HasPrefix(first, "# ") {
		words = append(words, strings.TrimSuffix(first[2:], "."))
	}
	if study.Model != "" {
		words = append(words, modelLabel(study.Model))
	}
	if study.GPU != "" {
		words = append(words, gpuLabel(study.GPU))
	}
	if study.Requests > 0 {
		words = append(words, strconv.Itoa(study.Requests)+" requests")
	}
	if len(study.Seeds) > 0 {
		var seeds []string
		for _, s := range study.Seeds {
			seeds = append(seeds, strconv.FormatUint(s, 10))
		}
		words = append(words, seedsText(seeds))
	}
	return strings.Join(words, ", "), nil
}

func hasFile(folder, name string) bool {
	_, err := os.Stat(filepath.Join(folder, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// hasResults says whether an experiment has left what figures are drawn from.
func hasResults(folder string) bool {
	return slices.ContainsFunc([]string{"summary.json", "plan.json", "table.csv"},
		func(name string) bool { return hasFile(folder, name) })
}
