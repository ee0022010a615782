package stats

import (
	"math"
	"strconv"
)

// Digits prints a value with three significant digits, and integers in full. A value that is no
// finite number prints as 0.
func Digits(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return strconv.FormatFloat(v, 'f', min(decimals, 6), 64)
}
