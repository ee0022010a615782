package aic

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// leastSquares returns positive figures that bring the sum of each even row nearest to 1. A figure
// that the rows do not determine stays near 1, or near its partner in pairs. Relative errors above
// the tolerance count linearly, not squared, because outliers would dominate.
func leastSquares(fixed []float64, terms [][]float64, pairs [][2]int) []float64 {
	const pull, alike, least, repeats, tolerated = 1e-4, 3e-3, 1e-2, 6, 0.05
	n := len(terms[0])
	x, figures := mat.NewVecDense(n, nil), make([]float64, n)
	for repeat := range repeats {
		a, b := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
		for j := range n {
			a.SetSym(j, j, pull)
			b.SetVec(j, pull)
		}
		for _, p := range pairs {
			a.SetSym(p[0], p[0], a.At(p[0], p[0])+alike)
			a.SetSym(p[1], p[1], a.At(p[1], p[1])+alike)
			a.SetSym(p[0], p[1], a.At(p[0], p[1])-alike)
		}
		for i := 0; i < len(terms); i += 2 {
			weight := 1.0
			if repeat > 0 {
				weight = 1 / math.Hypot(1, math.Log(fixed[i]+floats.Dot(figures, terms[i]))/tolerated)
			}
			row := mat.NewVecDense(n, terms[i])
			a.SymRankOne(a, weight, row)
			b.AddScaledVec(b, weight*(1-fixed[i]), row)
		}
		var factors mat.Cholesky
		factors.Factorize(a)
		if err := factors.SolveVecTo(x, b); err != nil && x.IsEmpty() {
			panic(err) // the pull towards 1 keeps the matrix definite
		}
		for j := range figures {
			figures[j] = max(x.AtVec(j), least)
		}
	}
	return figures
}
