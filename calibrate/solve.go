package calibrate

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// linear fits seconds = sum_j p_j x_j with p >= 0 by least squares of relative errors. It solves
// every subset of the few parameters and keeps the best nonnegative solution. The result
// is exact and the same on every machine.
func linear(d data, terms ...func(observation) float64) []float64 {
	best, least := make([]float64, len(terms)), math.Inf(1)
	for subset := 1; subset < 1<<len(terms); subset++ {
		var used []int
		for j := range terms {
			if subset>>j&1 == 1 {
				used = append(used, j)
			}
		}
		if len(used) > len(d) {
			continue
		}
		a, b := mat.NewDense(len(d), len(used), nil), mat.NewVecDense(len(d), nil)
		for i, p := range d {
			b.SetVec(i, 1)
			for k, j := range used {
				a.Set(i, k, terms[j](p)/p.seconds)
			}
		}
		var x mat.VecDense
		if err := x.SolveVec(a, b); err != nil {
			if _, illConditioned := err.(mat.Condition); !illConditioned {
				continue
			}
		}
		solution, ok := make([]float64, len(terms)), true
		for k, j := range used {
			solution[j] = x.AtVec(k)
			ok = ok && solution[j] >= 0 && !math.IsInf(solution[j], 0) // false for NaN
		}
		if !ok {
			continue
		}
		sum := 0.0
		for _, p := range d {
			t := 0.0
			for j, term := range terms {
				t += solution[j] * term(p)
			}
			sum += (t/p.seconds - 1) * (t/p.seconds - 1)
		}
		if sum < least*(1-1e-9) {
			best, least = solution, sum
		}
	}
	return best
}

// bound is the range of a positive parameter.
type bound struct{ low, high float64 }

// refine improves positive parameters of any model by least squares of log seconds, within bounds.
// It runs Nelder-Mead over their logarithms and restarts it until convergence.
func refine(d data, start []float64, bounds []bound,
	model func(p []float64, at observation) float64) []float64 {
	p := make([]float64, len(start))
	set := func(logs []float64) {
		for i, l := range logs {
			p[i] = math.Min(math.Max(math.Exp(l), bounds[i].low), bounds[i].high)
		}
	}
	cost := func(logs []float64) float64 {
		set(logs)
		sum := 0.0
		for _, at := range d {
			e := math.Log(model(p, at) / at.seconds)
			sum += e * e
		}
		for i, l := range logs { // leads back to within the bounds
			sum += math.Pow(l-math.Log(p[i]), 2)
		}
		return sum
	}
	best := make([]float64, len(start))
	for i, s := range start {
		best[i] = math.Log(math.Min(math.Max(s, bounds[i].low), bounds[i].high))
	}
	least := cost(best)
	for range 6 {
		result, err := optimize.Minimize(optimize.Problem{Func: cost}, best,
			&optimize.Settings{Converger: &optimize.FunctionConverge{Absolute: 1e-9, Relative: 1e-8,
				Iterations: 15 * len(start)}, FuncEvaluations: 3000 * len(start)},
			&optimize.NelderMead{SimplexSize: 0.1})
		if err != nil && result == nil || !(result.F < least) {
			break
		}
		improved := least - result.F
		best, least = result.X, result.F
		if improved < 1e-6*least+1e-9 {
			break
		}
	}
	set(best)
	return slices.Clone(p)
}

// rising makes values nondecreasing with the least weighted change in log
// value: pool adjacent violators.
func rising(values, weights []float64) []float64 {
	type pool struct {
		log, weight float64
		n           int
	}
	var pools []pool
	for i, v := range values {
		pools = append(pools, pool{math.Log(v), weights[i], 1})
		for k := len(pools) - 1; k > 0 && pools[k-1].log > pools[k].log; k-- {
			a, b := pools[k-1], pools[k]
			w := a.weight + b.weight
			pools = append(pools[:k-1], pool{(a.log*a.weight + b.log*b.weight) / w, w, a.n + b.n})
		}
	}
	var out []float64
	for _, p := range pools {
		for range p.n {
			out = append(out, math.Exp(p.log))
		}
	}
	return out
}

func one(observation) float64 { return 1 }

// Bounds of fitted times and rates. They are wide, but prevent a fit to few points from diverging.
var (
	callBound  = bound{1e-8, 1e-3}  // seconds
	blockBound = bound{1e-12, 1e-4} // seconds
	floorBound = bound{1e-7, 1e-2}  // seconds
	rateBound  = bound{1e8, 1e14}   // bytes/s
	noBlock    = 5e-10              // seconds: less per block is nothing
	infinite   = math.Inf(1)        // a bound that does not bind
)

// perPart returns an optional time for each of some parts, not set below least.
func perPart(seconds, least float64, from source, what string) hw.Figure {
	if seconds < least {
		return hw.Figure{}
	}
	if seconds >= 1e-6 {
		return from.us(seconds, what)
	}
	return from.figure(seconds*1e9, "ns", what)
}
