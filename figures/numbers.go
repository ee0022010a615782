package figures

import (
	"bytes"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/stats"
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
			for _, c := range figures[i].Charts {
				c.Values(func(series, x string, mean float64, s *doc.Sample) {
					low, high := s.Ends(mean)
					w.Write([]string{figures[i].Name, c.Title, c.Y, series, x, strconv.Itoa(max(1, s.N)),
						stats.Exact(mean), stats.Exact(low), stats.Exact(high), strconv.FormatBool(s.Unstable)})
				})
			}
		}
	}
	if w.Flush(); !any {
		return nil
	}
	return out.Bytes()
}
