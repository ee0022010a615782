package report

import (
	"math"
	"strconv"
)

// digits prints three significant digits, and integers in full.
func digits(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return strconv.FormatFloat(v, 'f', min(decimals, 6), 64)
}

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
