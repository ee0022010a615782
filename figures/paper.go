package figures

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/internal/files"
)

//go:embed papers.toml
var papersTOML string

// paperFigure is a figure of the papers, or one that they do not have; papers.toml explains the
// keys.
type paperFigure struct {
	Name, Caption, Means string

	Wide  float64
	Names map[string]string
	Looks map[string]int
	Panel []paperPanel
}

// papers is what papers.toml has.
type papers struct {
	Quantity map[string]*quantity
	Figure   []paperFigure
}

func readPapers() *papers {
	var p papers
	meta, err := toml.Decode(papersTOML, &p)
	if unknown := meta.Undecoded(); err != nil || len(unknown) > 0 {
		panic(fmt.Sprint("papers.toml: ", err, ", unknown keys ", unknown))
	}
	return &p
}

// accuracyTable is drawn from the paper's own numbers and needs no results.
const accuracyTable = "tableA1"

// results are the experiments that a figure is drawn from.
func (f *paperFigure) results() []string {
	var names []string
	for i := range f.Panel {
		if from := f.Panel[i].From; from != "" {
			names = append(names, from)
		}
	}
	return unique(names)
}

// PaperFigures names the figures.
func PaperFigures() []string {
	var names []string
	for _, f := range readPapers().Figure {
		names = append(names, f.Name)
	}
	return names
}

// PaperExperiments lists what a name stands for: the experiments that a figure is drawn
// from; an experiment for itself. No figure is drawn from others: ok is false.
func PaperExperiments(name string) (experiments []string, ok bool) {
	all := readPapers().Figure
	for i := range all {
		needs := all[i].results()
		if all[i].Name == name {
			return needs, true
		}
		if slices.Contains(needs, name) {
			experiments, ok = []string{name}, true
		}
	}
	return experiments, ok
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
	all := readPapers()
	var pictures []picture
	for i := range all.Figure {
		f := &all.Figure[i]
		if len(only) == 0 && f.Name == accuracyTable && len(pictures) == 0 {
			continue // it alone is no answer to a folder without results
		}
		if len(only) > 0 && !slices.Contains(only, f.Name) &&
			!slices.ContainsFunc(f.results(), func(r string) bool { return slices.Contains(only, r) }) {
			continue
		}
		pic, err := all.picture(f, results)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if len(pic.charts) > 0 {
			pictures = append(pictures, pic)
		}
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

// picture draws the panels of a figure whose results are there.
func (p *papers) picture(f *paperFigure, results string) (pic picture, err error) {
	pic = picture{file: f.Name, caption: f.Caption, means: f.Means, wide: f.Wide,
		looks: map[string]look{publishedSeries: {color: color.Gray{0x50}, marker: diamond}}}
	for _, ph := range Phases() {
		pic.looks[ph.Name] = ph.look
	}
	for series, n := range f.Looks {
		pic.looks[series] = nthLook(n)
	}
	var folders []string
	for i := range f.Panel {
		d := drawing{paperPanel: &f.Panel[i], figure: f, x: p.Quantity[f.Panel[i].X]}
		for _, name := range strings.Fields(d.Y) {
			d.y = append(d.y, p.Quantity[name])
		}
		folder := filepath.Join(results, d.From)
		switch {
		case d.From == "":
			d.rows, err = accuracyRecords()
		case hasResults(folder):
			folders = append(folders, folder)
			d.rows, err = readRecords(folder)
		default:
			continue
		}
		if err != nil {
			return pic, err
		}
		c, err := d.chart()
		if err != nil {
			return pic, err
		}
		if len(c.curves) > 0 || len(c.groups) > 0 {
			pic.charts = append(pic.charts, c)
		}
	}
	if pic.caption == "" && len(folders) > 0 {
		pic.caption, err = captionOfFolders(unique(folders))
	}
	return pic, err
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
			var plan []struct {
				Run
				Seeds []uint64 `json:"seeds"`
			}
			if err := files.ReadJSON(filepath.Join(folder, "plan.json"), &plan); err != nil {
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
		err = files.DecodeTOML(path, string(text), &study)
	}
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	title, titled := strings.CutPrefix(first, "# ")
	if !titled {
		title = ""
	}
	words := []string{strings.TrimSuffix(title, "."), modelLabel(study.Model), gpuLabel(study.GPU)}
	if study.Requests > 0 {
		words = append(words, strconv.Itoa(study.Requests)+" requests")
	}
	if len(study.Seeds) > 0 {
		words = append(words, seedsText(strings.Fields(strings.Trim(fmt.Sprint(study.Seeds), "[]"))))
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
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
