package figures

import (
	"bytes"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
)

var numberColumns = []string{"panel", "quantity", "series", "x", "runs", "mean", "low95", "high95",
	"unstable"}

// numbers writes the numbers of a figure as CSV, one row a point or part of a bar.
func numbers(f *doc.Figure) []byte {
	var out bytes.Buffer
	w := files.NewCSVWriter(&out)
	w.Write(numberColumns)
	for _, c := range f.Charts {
		row := func(series, x string, mean float64, s *doc.Sample) {
			low, high := s.Ends(mean)
			w.Write([]string{c.Title, c.Y, series, x, strconv.Itoa(max(1, s.N)), number(mean),
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
	w.Flush()
	return out.Bytes()
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
