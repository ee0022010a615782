package aic

import (
	"math"

	"gonum.org/v1/gonum/optimize"
)

// tolerated is from how large a relative error on errors count by their size, not by its square.
const tolerated = 0.05

// restarts of the search: a simplex collapses where one figure hardly matters.
const restarts = 4

// fit returns the positive figures for which price is nearest to the seconds of the even points:
// the odd ones are for judging. It searches from start, whose order of magnitude should be right.
func fit(start []float64, points int, price func(figures []float64, i int) float64,
	seconds func(i int) float64) []float64 {
	figures := make([]float64, len(start))
	exp := func(x []float64) []float64 {
		for i, v := range x {
			figures[i] = start[i] * math.Exp(v)
		}
		return figures
	}
	problem := optimize.Problem{Func: func(x []float64) (sum float64) {
		f := exp(x)
		for i := 0; i < points; i += 2 {
			e := math.Log(price(f, i)/seconds(i)) / tolerated
			sum += math.Sqrt(1+e*e) - 1
		}
		for _, v := range x { // a figure that does not matter stays where it was
			sum += 1e-3 * v * v
		}
		return sum
	}}
	x := make([]float64, len(start))
	for range restarts {
		done, _ := optimize.Minimize(problem, x, &optimize.Settings{MajorIterations: 400 * len(x)},
			&optimize.NelderMead{SimplexSize: 0.3})
		if done == nil {
			break
		}
		copy(x, done.X)
	}
	return append([]float64(nil), exp(x)...)
}
