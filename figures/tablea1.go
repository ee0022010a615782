package figures

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	_ "embed"
)

// Accuracy on LongBench as the SparseServe paper prints it (A.1, Table 1), by
// token budget of sparse attention. Nothing here measures accuracy.
//
//go:embed tableA1.csv
var accuracyCSV string

// tableA1 draws the paper's accuracy over that of full attention, mean and 95 %
// interval over the datasets.
func tableA1() (picture, error) {
	rows, err := csv.NewReader(strings.NewReader(accuracyCSV)).ReadAll()
	if err != nil {
		return picture{}, err
	}
	budgets := rows[0][3:]
	c := chart{x: "Token Budget", y: "Accuracy over Full Attention (%)", doubly: true,
		axis: axis{90, 105, false}}
	for _, model := range []string{"LWM-Text-Chat-1M", "Llama-3-8B-262k"} {
		one := curve{series: model + " (paper)"}
		for i, text := range budgets {
			budget, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return picture{}, err
			}
			var shares []float64
			for _, row := range rows[1:] {
				if row[0] != model {
					continue
				}
				full, err1 := strconv.ParseFloat(row[2], 64)
				sparse, err2 := strconv.ParseFloat(row[3+i], 64)
				if err := cmp.Or(err1, err2); err != nil {
					return picture{}, fmt.Errorf("tableA1.csv: %s: %w", row[1], err)
				}
				shares = append(shares, 100*sparse/full)
			}
			one.points = append(one.points, summarise(budget, shares, false))
		}
		c.curves = append(c.curves, one)
	}
	return picture{file: "tableA1", caption: "As the SparseServe paper prints it, LongBench",
		means: "datasets", charts: []chart{c}}, nil
}
