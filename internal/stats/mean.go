package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Mean returns the mean of two or more samples and the half width of its Student's t interval at a
// confidence from 0 to 1.
func Mean(samples []float64, confidence float64) (mean, half float64) {
	mean, sd := stat.MeanStdDev(samples, nil)
	n := float64(len(samples))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.5 + confidence/2)
	return mean, t * sd / math.Sqrt(n)
}
