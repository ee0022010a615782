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
	if share > 0 && text != "0.0" {
		text = "+" + text
	}
	return text
}

// seeds counts them.
func seeds(n int) string {
	if n == 1 {
		return "one seed"
	}
	return strconv.Itoa(n) + " seeds"
}

// digits prints a number of a table.
func digits(v float64) string { return stats.Digits(v) }
