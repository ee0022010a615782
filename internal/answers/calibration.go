package answers

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// readCalibration makes the page of the folder of a calibration's plots; the profile is in the
// folder that has it.
func readCalibration(dir string) (*builder, error) {
	all, err := figures.FitsData(dir)
	if err != nil {
		return nil, err
	}
	p := &builder{Doc: doc.Doc{Title: nameOf(dir) + ": calibration"}}
	for _, f := range all {
		note, _, _ := strings.Cut(f.Caption, " Named:") // in the pictures
		s := doc.Figure{Title: strings.TrimPrefix(f.Name, "fit-"), Caption: note, Charts: f.Charts}
		p.Figures = append(p.Figures, s)
	}
	folder, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	var kernels struct {
		Title      string        `toml:"title"`
		Provenance hw.Provenance `toml:"provenance"`
		Fits       []hw.Fit      `toml:"fits"`
	}
	path := folder + "-kernels.toml"
	text, err := files.ReadResult(path)
	if err == nil {
		if err := files.DecodeTOML(path, string(text), &kernels); err != nil {
			return nil, err
		}
		p.addProvenance(&kernels.Provenance)
		p.addQuality(kernels.Fits)
	} else {
		p.Lead = append(p.Lead, "Measured and fitted, without the profile: "+filepath.Base(path)+
			" is not in the folder that has it.")
	}
	for _, name := range []string{".toml", "-engine.toml"} {
		p.addFile(folder+name, filepath.Base(folder)+name)
	}
	return p, nil
}

// addProvenance says what was measured, where and when.
func (p *builder) addProvenance(v *hw.Provenance) {
	var words []string
	for _, w := range []struct{ name, value string }{{"measured", v.Date}, {"on", v.Device},
		{"host", v.Host}, {"driver", v.Driver}, {"CUDA", v.CUDA}} {
		if w.value != "" {
			words = append(words, w.name+" "+w.value)
		}
	}
	if len(words) > 0 {
		p.Lead = append(p.Lead, strings.Join(words, ", ")+".")
	}
	p.Lead = append(p.Lead, v.Notes...)
}

// addQuality adds a table of the fits, and a warning for each that is flagged.
func (p *builder) addQuality(fits []hw.Fit) {
	t := doc.Table{Title: "Quality of the fits",
		Note: "Errors are on points that the fit has not seen.",
		Columns: columns(1, "cost", "points", "held out", "median error %", "worst error %",
			"R² of log seconds")}
	var warnings []warn.Said
	for i := range fits {
		f := &fits[i]
		for _, flag := range f.Flags {
			warnings = append(warnings, warn.Said{Warning: warn.New(warn.Flagged,
				"%s is flagged, %s", f.Model,
				flag).About(f.Model + flag)})
		}
		t.Rows = append(t.Rows, row(f.Model, fmt.Sprint(f.Samples), fmt.Sprint(f.HeldOut),
			digits(100*f.MedianError), digits(100*f.MaxError), fmt.Sprintf("%.4f", f.R2)))
	}
	p.warn(nil, warnings, 0)
	p.Tables = append(p.Tables, t)
}
