package answers

import (
	"strconv"

	"github.com/sparseserve/sparseserve/internal/stats"
)

// number prints a figure as its file has it.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// percent prints a share with its sign.
func percent(share float64) string {
	text := strconv.FormatFloat(100*share, 'f', 1, 64)
	switch {
	case text == "-0.0":
		return "0.0"
	case share > 0 && text != "0.0":
		return "+" + text
	}
	return text
}

// digits prints a number of a table.
func digits(v float64) string { return stats.Digits(v) }
