package figures

import (
	"bytes"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
)

// NumbersFile is the file with the numbers of the latest pictures.
const NumbersFile = "pictures.csv"

var numberColumns = []string{"picture", "panel", "quantity", "series", "x", "runs", "mean", "low95",
	"high95", "unstable"}

// numbers returns the numbers of figures as CSV, one row per point or part of a bar; nil if no
// figure exports numbers.
func numbers(figures []doc.Figure) []byte {
	var out bytes.Buffer
	w := files.NewCSVWriter(&out)
	w.Write(numberColumns)
	any := false
	for i := range figures {
		if figures[i].Numbers && len(figures[i].Charts) > 0 {
			any = true
			numbersOf(w, &figures[i])
		}
	}
	if w.Flush(); !any {
		return nil
	}
	return out.Bytes()
}

// numbersOf writes a figure's rows.
func numbersOf(w files.CSVWriter, f *doc.Figure) {
	for _, c := range f.Charts {
		row := func(series, x string, mean float64, s *doc.Sample) {
			low, high := s.Ends(mean)
			w.Write([]string{f.Name, c.Title, c.Y, series, x, strconv.Itoa(max(1, s.N)), number(mean),
				number(low), number(high), strconv.FormatBool(s.Unstable)})
		}
		for i := range c.Lines {
			for j := range c.Lines[i].Points {
				p := &c.Lines[i].Points[j]
				row(c.Lines[i].Name, number(p.X), p.Y, &p.Sample)
			}
		}
		for i := range c.Bars {
			if v := c.Bars[i].Published; v != nil {
				row(doc.Published, c.Bars[i].Group, *v, &doc.Sample{})
			}
		}
		for i := range c.Bars {
			b := &c.Bars[i]
			of := ""
			if b.Name != "" {
				of = b.Name + ": "
			}
			for j := range b.Parts {
				p := &b.Parts[j]
				if p.Name == b.Name {
					of = ""
				}
				row(of+p.Name, b.Group, p.Value, &p.Sample)
			}
			if len(b.Parts) > 1 {
				row(of+"total", b.Group, b.Value(), &b.Sample)
			}
		}
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
