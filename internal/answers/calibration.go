package answers

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
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
				within[j] = doc.Fixed(100*share, "%.1f %%")
			}
		}
		r2 := doc.Cell{} // of a measurement
		if f.R2 != 0 {
			r2 = doc.Fixed(f.R2, "%.4f")
		}
		t.Add(f.Model, f.Samples, f.HeldOut, 100*f.MedianError, 100*f.MaxError, within[0], within[1], r2)
	}
	d.Warnings, d.Tables = Warnings(warnings, 0), []doc.Table{t}
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

// fitsFile is the file of a calibration's folder with each measured point and its fit.
const fitsFile = "fits.csv"

// fitted is a measured point with the prediction of a cost model's fit.
type fitted struct {
	model, card, quality, name string
	line                       int     // of the chart
	measured, fit, bound       float64 // us, and the relative error that a good fit has at most
}

// Fits returns the pictures of the fits in a calibration's folder, one per cost model.
func Fits(dir string) (all []doc.Figure, err error) {
	var points []fitted
	found, err := eachRow(dir, fitsFile, func(r *files.Row) {
		p := fitted{r.Text("model"), r.Text("card"), r.Text("quality"), r.Text("point"), 0,
			r.Number("measured_us"), r.Number("fitted_us"), r.Number("limit")}
		if r.Text("part") == "held out" {
			p.line = 1
		}
		points = append(points, p)
	})
	if err == nil && !found {
		err = fmt.Errorf("%s: no row", filepath.Join(dir, fitsFile))
	}
	for _, model := range distinct(points, func(p *fitted) string { return p.model }) {
		own := where(points, func(p *fitted) bool { return p.model == model })
		all = append(all, doc.Figure{Name: "fit-" + doc.FileName(model), Title: model,
			Caption: fmt.Sprintf("On %s, %s. These errors are beyond what a measurement is uncertain "+
				"by. Dashed: as far off as a good fit is. Named: the points that the fit misses most.",
				own[0].card, own[0].quality),
			Charts: []*doc.Chart{overMeasured(own)}})
	}
	return all, err
}

// namedPoints is the number of points that are labelled with their names.
const namedPoints = 3

// overMeasured draws the error of the fit over the measured time.
func overMeasured(points []fitted) *doc.Chart {
	c := &doc.Chart{Title: points[0].model + ", error of the fit", X: "Measured (us)",
		Y: "Fitted less measured (%)",
		Lines: []doc.Line{{Name: "measured, in the fit", Color: "#0072b2", Dots: true},
			{Name: "measured, held out", Color: "#c62f1f", Dots: true}},
		Levels: []float64{-100 * points[0].bound, 0, 100 * points[0].bound}}
	slices.SortStableFunc(points, func(a, b fitted) int {
		return cmp.Compare(math.Abs(b.fit/b.measured-1), math.Abs(a.fit/a.measured-1))
	})
	for i, p := range points {
		one := doc.Point{X: p.measured, Y: 100 * (p.fit/p.measured - 1)}
		if i < namedPoints {
			one.Note = p.name
		}
		c.Lines[p.line].Points = append(c.Lines[p.line].Points, one)
	}
	c.Lines = drawnLines(c.Lines)
	c.LogX = farApart(c.Lines, 3, func(p doc.Point) float64 { return p.X })
	return c
}

// farApart reports whether positive values differ by more than a factor.
func farApart(lines []doc.Line, factor float64, of func(doc.Point) float64) bool {
	least, most := math.Inf(1), math.Inf(-1)
	for _, l := range lines {
		for _, p := range l.Points {
			least, most = min(least, of(p)), max(most, of(p))
		}
	}
	return least > 0 && most > factor*least
}
