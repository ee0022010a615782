package papers

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// Accuracy on LongBench as the SparseServe paper prints it (A.1, Table 1), by token budget of
// sparse attention. Nothing here measures accuracy.
//
//go:embed tableA1.csv
var accuracyCSV []byte

// accuracyRecords returns a row for each data set and budget of tableA1.csv.
func accuracyRecords() (out []record, err error) {
	header, rows, err := parseRecords("tableA1.csv", accuracyCSV)
	for _, r := range rows {
		for _, budget := range header[3:] {
			out = append(out, record{r.where, map[string]string{"model": r.cells["model"],
				"full": r.cells["full"], "budget": budget, "accuracy": r.cells[budget]}, false})
		}
	}
	return out, err
}

// recordsCaption lists the models, cards, requests and seeds of rows.
func recordsCaption(rows []record) string {
	var words []string
	for _, of := range []struct{ keys, text string }{{"model", "%s"}, {"gpu", "%s"},
		{"requests", "%s requests"}, {"seed seeds", "seeds %s"}} {
		var values []string
		for i := range rows {
			values = append(values, strings.Fields(rows[i].texts(of.keys))...)
		}
		slices.Sort(values)
		for i, v := range values {
			values[i] = ModelName(v)
		}
		if values = slices.Compact(values); len(values) > 0 {
			words = append(words, fmt.Sprintf(of.text, strings.Join(values, ", ")))
		}
	}
	return strings.Join(words, ", ")
}
