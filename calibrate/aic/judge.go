package aic

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/calibrate"
	"github.com/sparseserve/sparseserve/hw"
)

// Judged is a point of a table with its measured and priced seconds.
type Judged struct {
	Size             float64 // product of the work's sizes: tokens, columns and rows of a GEMM
	Measured, Priced float64
	Unseen           bool // not used by a grid or fit
}

// judge adds a model's errors on unseen points, and flags the fit like a measured calibration. The
// worst point does not flag the fit: among thousands of single measurements it is the table's
// noise.
func (im *importer) judge(name string, points int, all []Judged) {
	var off []float64
	for _, at := range all {
		if at.Unseen {
			off = append(off, math.Abs(at.Priced/at.Measured-1))
		}
	}
	if len(off) == 0 {
		return
	}
	slices.Sort(off)
	within := func(most float64) float64 {
		n, _ := slices.BinarySearch(off, most)
		return round(float64(n) / float64(len(off)))
	}
	f := hw.Fit{Model: name, Samples: points, HeldOut: len(off), MedianError: round(off[len(off)/2]),
		MaxError: round(off[len(off)-1]), Within5: within(0.05), Within10: within(0.1)}
	calibrate.FlagMedian(&f)
	im.costs.Fits = append(im.costs.Fits, f)
	im.judged[name] = all
}

// mostDrawn is the approximate limit of points per part of a picture.
const mostDrawn = 400

// WriteFits writes the table from which the plots of the fits are drawn, as a measured calibration
// does, with no more points than a picture shows.
func (made *Imported) WriteFits(dir string) error {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	var rows [][]string
	for i, f := range made.Kernels.Fits {
		quality := fmt.Sprintf("held out: median %.1f %%, within 10 %%: %.0f %% of %d points",
			100*f.MedianError, 100*f.Within10, f.HeldOut)
		all := slices.SortedFunc(slices.Values(made.Judged[i]), func(a, b Judged) int {
			return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.Measured, b.Measured),
				cmp.Compare(a.Priced, b.Priced))
		})
		for _, unseen := range []bool{false, true} {
			name := "fit"
			if unseen {
				name = "held out"
			}
			part := slices.DeleteFunc(slices.Clone(all),
				func(at Judged) bool { return at.Unseen != unseen })
			for j := 0; j < len(part); j += len(part)/mostDrawn + 1 {
				at := part[j]
				rows = append(rows, []string{made.Card.Name, f.Model, quality, name, "",
					number(at.Measured * 1e6), number(at.Priced * 1e6), "0.1"})
			}
		}
	}
	return calibrate.WriteFits(dir, rows)
}
