package aic

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// Options configure an import.
type Options struct {
	// Card is a built-in card or a card file, which gives the nominal figures, link and host; ""
	// makes a card from the nominal figures (DIR.yaml beside the folder).
	Card string
	// Name is the name of the kernels, and of a new card.
	Name string
}

// Imported holds the imported kernels of a card, and that card.
type Imported struct {
	Card *hw.Card
	// Kernels' notes list the costs that the tables lack, with their replacement, and the rows left
	// out.
	Kernels *hw.Kernels
	// Judged holds the judged points of each of the kernels' Fits, in the same order.
	Judged [][]Judged
}

// importer imports the kernels of one card.
type importer struct {
	tables  *tables
	card    *hw.Card
	base    *hw.Kernels // source of costs that no table has
	costs   *hw.Kernels
	notes   []string
	skipped map[string]int
	judged  map[string][]Judged // by name of the fit

	fp8    map[hw.Sizes]float64 // GEMMs with one scale per matrix
	hosted map[hw.Sizes]bool    // fp8_block GEMMs that were host-bound
}

// Import makes kernels from the tables in a folder. Values are in SI units or carry their unit.
func Import(ctx context.Context, dir string, opts Options) (*Imported, error) {
	t, err := open(dir)
	if err != nil {
		return nil, err
	}
	im := &importer{tables: t, skipped: map[string]int{}, judged: map[string][]Judged{}}
	card, base, err := im.machine(dir, opts)
	if err != nil {
		return nil, err
	}
	im.card = card
	if im.base, err = hw.LoadKernels(base); err != nil {
		return nil, err
	}
	im.costs = &hw.Kernels{Name: opts.Name, From: base, MeasuredOn: im.card.Name}
	for _, step := range []func() error{im.gemms, im.prefill, im.decode, im.allReduce,
		im.experts, im.selected, im.latent} {
		if err := cmp.Or(ctx.Err(), step()); err != nil {
			return nil, err
		}
	}
	if im.costs.Title == "" {
		return nil, fmt.Errorf("tables: %s: none of GEMMs or attention: nothing to import", dir)
	}
	for version, n := range t.other {
		im.skipped["another version than their table's first, "+version] += n
	}
	for what, n := range im.skipped {
		im.notes = append(im.notes, fmt.Sprintf("left out: %d rows of %s", n, what))
	}
	slices.Sort(im.notes)
	im.costs.Provenance.Notes = im.notes
	made := &Imported{Card: im.card, Kernels: im.costs}
	for _, f := range im.costs.Fits {
		made.Judged = append(made.Judged, im.judged[f.Model])
	}
	return made, nil
}

// missing notes that a table is missing and what replaces it.
func (im *importer) missing(operation, instead string) {
	im.notes = append(im.notes, fmt.Sprintf("no table %s: %s", operation, instead))
}

func (im *importer) skip(what string) { im.skipped[what]++ }

// fault returns an error of a table row.
func (im *importer) fault(operation string, line int, format string, values ...any) error {
	path, _ := im.tables.file(operation, "vllm")
	return fmt.Errorf("tables: %s: row %d: %s", path, line, fmt.Sprintf(format, values...))
}

// title records the engine and device of the first table.
func (im *importer) title(c common) {
	if im.costs.Title == "" {
		im.costs.Title = fmt.Sprintf("%s %s on an %s, from AIConfigurator's tables", c.Framework,
			c.Version, c.Device)
	}
}

// grid adds a grid made from a table's times (ms). It judges the grid by the measured points
// between the grid's points.
func (im *importer) grid(g hw.Grid, times map[hw.Sizes]float64, c common,
	kernels []string) error {
	all, filled := maps.Clone(times), 0
	g.Each(func(sizes hw.Sizes) {
		t, ok := all[sizes]
		if !ok {
			filled++
			t = inProportion(&g, all, sizes)
			all[sizes] = t
		}
		g.Times = append(g.Times, stats.Significant(t*1e3, gridDigits))
	})
	if slices.Contains(g.Times, 0) {
		return fmt.Errorf("tables: %s: no %s of %s of the smallest sizes, from which larger ones could "+
			"be derived", im.tables.dir, g.Kernel, g.Type)
	}
	switch {
	case g.Kernel == hw.GridRagged:
	case g.Kernel == hw.GridAllReduce:
		shortest(&g)
		rising(&g)
	case g.Kernel != hw.GridGEMM:
		rising(&g)
	case g.Type == "bf16":
		fastest(&g, len(g.Axes[0].At))
	default:
		fastest(&g, 1)
	}
	g.From = hw.Imported
	g.Source = source(c, kernels, fmt.Sprintf("; %d of %d times are scaled from smaller sizes",
		filled, len(g.Times)))
	if filled == 0 {
		g.Source = source(c, kernels, "")
	}
	im.title(c)
	im.costs.Grids = append(im.costs.Grids, g)
	var off []Judged
	for sizes, t := range times {
		inside, on := place(&g, sizes)
		if !inside || g.Type == "fp8_block" && im.hosted[sizes] {
			continue
		}
		off = append(off, Judged{sizes[0] * sizes[1] * max(1, sizes[2]), t * 1e-3,
			cost.GridSeconds(&g, sizes), !on})
	}
	im.judge(g.Kernel+" of "+g.Type, len(times), off)
	return nil
}

// fastest lowers a GEMM's time to the time of the next larger token count if that is shorter, for
// the first sizes points of the token axis. For 16-bit GEMMs of similar sizes the tables have two
// times, 15 % apart; the shorter one fits the steps of recorded servers. For other types only the
// first point is lowered: a table may have the host's time there, because it was measured first.
func fastest(g *hw.Grid, sizes int) {
	step := len(g.Axes[1].At) * len(g.Axes[2].At)
	for i := min(sizes*step, len(g.Times)-step) - 1; i >= 0; i-- {
		g.Times[i] = min(g.Times[i], g.Times[i+step])
	}
}

// shortest lowers an all-reduce's time to that of more bytes where that is shorter: on a B200 the
// table's kernel for 256 KiB takes half longer than the one for 2 MiB, and engines fuse the former
// with the norm into a third kernel, which is faster than both.
func shortest(g *hw.Grid) {
	bytes := len(g.Axes[1].At)
	for i := len(g.Times) - 2; i >= 0; i-- {
		if i%bytes < bytes-1 {
			g.Times[i] = min(g.Times[i], g.Times[i+1])
		}
	}
}

// rising removes noise: no point takes less time than a point with fewer lists, tokens, GPUs or
// bytes. A time that contradicts both neighbours becomes the nearer of their times; then no time is
// below its predecessor. More query heads per list may take less time, because kernels split lists
// for them.
func rising(g *hw.Grid) {
	strides := g.Strides()
	for axis, step := range strides[:2] {
		was, n := slices.Clone(g.Times), len(g.Axes[axis].At)
		for at, t := range was {
			before, after := 0.0, math.Inf(1)
			if at/step%n > 0 {
				before = was[at-step]
			}
			if at/step%n < n-1 {
				after = was[at+step]
			}
			g.Times[at] = median([]float64{before, t, after})
		}
	}
	for at := range g.Times {
		for axis, step := range strides[:2] {
			if at/step%len(g.Axes[axis].At) > 0 {
				g.Times[at] = max(g.Times[at], g.Times[at-step])
			}
		}
	}
}

// inProportion returns the time of sizes that a table omits because they are large: the least time
// extrapolated from a smaller size in proportion to the work; 0 if there is none. It is an upper
// bound, because fixed costs do not grow. Attention of a prompt grows quadratically with its
// tokens, so its tokens are never extrapolated.
func inProportion(g *hw.Grid, times map[hw.Sizes]float64, sizes hw.Sizes) (t float64) {
	for i, a := range g.Axes {
		if i == 0 && (g.OfPrompts() || g.Kernel == hw.GridSelectedPrefill) {
			continue
		}
		if at := slices.Index(a.At, sizes[i]); at > 0 {
			smaller := sizes
			smaller[i] = a.At[at-1]
			if u := times[smaller] * sizes[i] / smaller[i]; u > 0 && (t == 0 || u < t) {
				t = u
			}
		}
	}
	return t
}

// place reports whether sizes are within the grid, and whether they are one of its points.
func place(g *hw.Grid, sizes hw.Sizes) (inside, on bool) {
	inside, on = true, true
	for i, a := range g.Axes {
		_, found := slices.BinarySearch(a.At, sizes[i])
		on = on && found
		inside = inside && sizes[i] >= a.At[0] && sizes[i] <= a.At[len(a.At)-1]
	}
	return inside, on
}

// round keeps four significant digits.
func round(x float64) float64 { return stats.Significant(x, 4) }

// gridDigits is the significant digits of a grid's times; the tables repeat within a percent.
const gridDigits = 3

// bases maps a card's fa2 kernels to the kernels that give the costs that no table has.
var bases = map[string]string{"hopper-mma": "hopper-fa3", "ampere": "ampere-fa2"}

// machine returns the card and the name of the built-in kernels for costs that no table has.
func (im *importer) machine(dir string, opts Options) (*hw.Card, string, error) {
	if opts.Card != "" {
		c, err := hw.LoadCard(opts.Card)
		if err != nil {
			return nil, "", err
		}
		return c, cmp.Or(bases[c.Kernels.FA2], c.Kernels.FA2), nil
	}
	return nominalCard(filepath.Clean(dir)+".yaml", opts.Name)
}
