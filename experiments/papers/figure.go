package papers

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/nearest"
)

//go:embed figures.toml
var figuresTOML string

// paperFigure is a figure of the papers, or an additional one; figures.toml explains the keys.
type paperFigure struct {
	Name, Caption, Means string

	Names map[string]string
	Looks map[string]int
	Panel []panel
}

// book is the content of figures.toml.
type book struct {
	Systems, Models  map[string]string // names in the papers
	Phase            []Phase
	Quantity, Metric map[string]*quantity
	Figure           []paperFigure
}

// figuresBook reads figures.toml once.
var figuresBook = sync.OnceValue(func() *book {
	var b book
	decode("figures.toml", figuresTOML, &b)
	return &b
})

// accuracyTable is drawn from the paper's own numbers and needs no results.
const accuracyTable = "tableA1"

// results returns the experiments that a figure is drawn from.
func (f *paperFigure) results() (names []string) {
	for i := range f.Panel {
		if from := f.Panel[i].From; from != "" && !slices.Contains(names, from) {
			names = append(names, from)
		}
	}
	return names
}

// Names lists the names of the papers' figures and experiments.
func Names() (names []string) {
	for _, f := range figuresBook().Figure {
		names = append(names, f.Name)
	}
	return slices.Compact(slices.Sorted(slices.Values(append(names, PaperExperiments()...))))
}

// Needed lists the experiments behind names: all of a figure, or the one of the name.
func Needed(names []string) (needed []string, err error) {
	figures, known := figuresBook().Figure, Names()
	for _, name := range names {
		i := slices.IndexFunc(figures, func(f paperFigure) bool { return f.Name == name })
		switch {
		case i >= 0:
			needed = append(needed, figures[i].results()...)
		case slices.Contains(known, name):
			needed = append(needed, name)
		default:
			return nil, fmt.Errorf("%s: no such figure or experiment of the papers%s; there are %s", name,
				nearest.Meant(name, known), strings.Join(known, ", "))
		}
	}
	return needed, nil
}

// Figures returns the paper figures whose results are in l.Dir. only selects figures by their own
// names or names of experiments; empty selects all. A figure over several experiments shows the
// experiments whose results exist. ran describes the runs of configurations for captions.
func (l *Studies) Figures(ctx context.Context, only []string,
	ran func(...[]config.Point) string) (all []doc.Figure, err error) {
	b := figuresBook()
	for i := range b.Figure {
		f := &b.Figure[i]
		if len(only) == 0 && f.Name == accuracyTable && len(all) == 0 {
			continue // it alone is no answer to a folder without results
		}
		if len(only) > 0 && !slices.Contains(only, f.Name) &&
			!slices.ContainsFunc(f.results(), func(r string) bool { return slices.Contains(only, r) }) {
			continue
		}
		drawn, err := l.draw(ctx, b, f, ran)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if len(drawn.Charts) > 0 {
			all = append(all, drawn)
		}
	}
	if len(all) == 0 {
		of := "a figure of the paper"
		if len(only) > 0 {
			of = strings.Join(only, ", ")
		}
		return nil, fmt.Errorf("%s: no results of %s", l.Dir, of)
	}
	return all, nil
}

// draw makes charts of the panels of a figure that have results.
func (l *Studies) draw(ctx context.Context, b *book, f *paperFigure,
	ran func(...[]config.Point) string) (drawn doc.Figure, err error) {
	drawn = doc.Figure{Name: f.Name, Caption: f.Caption}
	var configs [][]config.Point
	var read []string // experiments
	for i := range f.Panel {
		d := drawing{panel: &f.Panel[i], figure: f, x: b.Quantity[f.Panel[i].X]}
		for _, name := range strings.Fields(d.Y) {
			d.y = append(d.y, b.Quantity[name])
		}
		if d.From == "" {
			d.rows, err = parseRecords("tableA1.csv", accuracyCSV)
		} else {
			d.rows, err = readRecords(filepath.Join(l.Dir, d.From))
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return drawn, err
		}
		c, err := d.chart()
		if err != nil {
			return drawn, err
		}
		if f.Caption == "" && !slices.Contains(read, d.From) {
			s, err := config.LoadSweep(ctx, d.From, l.Sets)
			if err != nil {
				return drawn, err
			}
			read, configs = append(read, d.From), append(configs, s.Variants...)
		}
		if c != nil {
			drawn.Charts = append(drawn.Charts, c)
		}
	}
	Paint(drawn.Charts, f.Looks)
	if len(configs) > 0 {
		drawn.Caption = ran(configs...)
	}
	drawn.Caption = strings.TrimSpace(drawn.Caption + " " + drawn.Spread(cmp.Or(f.Means, "runs")))
	return drawn, nil
}

// Accuracy on LongBench as the SparseServe paper prints it (A.1, Table 1), by token budget of
// sparse attention. Nothing here measures accuracy.
//
//go:embed tableA1.csv
var accuracyCSV []byte
