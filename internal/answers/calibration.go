package answers

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// Calibration returns the document on measured or imported, fitted costs: place and date, the
// quality of each fit, and a warning for each flagged fit.
func Calibration(name string, from *hw.Provenance, fits []hw.Fit) *doc.Doc {
	d := &doc.Doc{Title: name + ": calibration"}
	var words []string
	for _, w := range []struct{ name, value string }{{"measured", from.Date}, {"on", from.Device},
		{"host", from.Host}, {"driver", from.Driver}, {"CUDA", from.CUDA}} {
		if w.value != "" {
			words = append(words, w.name+" "+w.value)
		}
	}
	if len(words) > 0 {
		d.Lead = append(d.Lead, strings.Join(words, ", ")+".")
	}
	d.Lead = append(d.Lead, from.Notes...)
	t := doc.Table{Title: "Quality of the fits",
		Note: "Errors are on points that the fit has not seen.",
		Columns: doc.Columns("cost", ">points", ">held out", ">median error|%", ">worst error|%",
			">within 5 %", ">within 10 %", ">R² of log seconds")}
	var warnings []warn.Warning
	for i := range fits {
		f := &fits[i]
		for _, flag := range f.Flags {
			warnings = append(warnings, warn.New(warn.Flagged, "%s is flagged, %s", f.Model,
				flag).About(f.Model+flag))
		}
		var within [2]doc.Cell // of an import
		if f.Within10 > 0 {
			for j, share := range []float64{f.Within5, f.Within10} {
				within[j] = doc.As(100*share, fmt.Sprintf("%.1f %%", 100*share))
			}
		}
		r2 := doc.Cell{} // of a measurement
		if f.R2 != 0 {
			r2 = doc.As(f.R2, fmt.Sprintf("%.4f", f.R2))
		}
		t.Add(f.Model, f.Samples, f.HeldOut, 100*f.MedianError, 100*f.MaxError, within[0], within[1], r2)
	}
	d.Warnings, d.Tables = Warnings(said(warnings, ""), 0), []doc.Table{t}
	return d
}

// readCalibration builds the document of the folder with a calibration's plots; the profile is in
// the parent folder.
func readCalibration(dir string) (*doc.Doc, error) {
	all, err := Fits(dir)
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	var kernels hw.Kernels
	path := folder + "-kernels.toml"
	text, missing := files.ReadResult(path)
	if missing == nil {
		if err := files.DecodeTOML(path, string(text), &kernels); err != nil {
			return nil, err
		}
	}
	p := Calibration(nameOf(dir), &kernels.Provenance, kernels.Fits)
	if missing != nil {
		p.Tables, p.Lead = nil, []string{"Measured and fitted, without the profile: " +
			filepath.Base(path) + " is not in the folder that has it."}
	}
	p.Figures = all
	for _, name := range []string{".toml", "-engine.toml"} {
		addFile(p, folder+name, filepath.Base(folder)+name)
	}
	return p, nil
}
