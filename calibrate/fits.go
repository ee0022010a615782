package calibrate

import (
	"bytes"
	"math"
	"path/filepath"
	"strconv"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/files"
)

// FitsFile is the table behind the plots, in their folder: each measured point of each model with
// the profile's price.
const FitsFile = "fits.csv"

// writeFits writes the table of fits, one row per point. measured_us and fitted_us are medians and
// prices, and limit is the maximum relative error of a good fit.
func (c *Calibration) writeFits(dir string) error {
	var rows [][]string
	for i := range c.models {
		m := &c.models[i]
		for _, part := range []struct {
			name   string
			points data
		}{{"fit", m.fit}, {"held out", m.held}} {
			for _, at := range part.points {
				rows = append(rows, m.fitRow(c.Profile, c.Profile.Fits[i], part.name, at))
			}
		}
	}
	return WriteFits(dir, rows)
}

// WriteFits writes the table of fits, one row per point. Rows of one model are contiguous.
func WriteFits(dir string, rows [][]string) error {
	var out bytes.Buffer
	w := files.NewCSVWriter(&out)
	w.Write([]string{"card", "model", "quality", "part", "point",
		"measured_us", "fitted_us", "limit"})
	for _, row := range rows {
		w.Write(row)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, FitsFile), out.Bytes())
}

func (m *model) fitRow(p *hw.Profile, f hw.Fit, part string, at observation) []string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	return []string{p.Name, m.name, quality(f), part,
		short(at.Point, append(m.fit[:len(m.fit):len(m.fit)], m.held...)),
		number(at.seconds * 1e6), number(m.price(p, at) * 1e6), number(worstLimit)}
}

func quality(f hw.Fit) string {
	of := "held out"
	if f.HeldOut == 0 {
		of = "in the fit"
	}
	return of + ": median " + percent(f.MedianError) + ", worst " + percent(f.MaxError) +
		"; R² of all " + number(f.R2)
}

func smallestTime(d data) float64 {
	t := infinite
	for _, at := range d {
		t = math.Min(t, at.seconds)
	}
	return t
}
