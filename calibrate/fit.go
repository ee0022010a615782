package calibrate

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"

	"github.com/sparseserve/sparseserve/hw"
)

// datum is a measured point as a fit sees it.
type datum struct {
	Point
	seconds float64   // median, or mean (Record.seconds)
	within  float64   // seconds: half of what its measurement leaves open (resolution.go)
	model   *hw.Model // that stands for the point's shape, nil without one
}

// data are the medians of one or more probes.
type data []datum

// of returns the medians of some probes, in the order of measuring.
func (s *Samples) of(probes ...string) data {
	var d data
	turns := s.betweenVisits()
	models := map[string]*hw.Model{"": nil}
	for _, r := range s.Records {
		if !slices.Contains(probes, r.Point.Probe) {
			continue
		}
		if _, known := models[r.Point.Shape]; !known {
			m, err := shapeModel(r.Point.Shape)
			must(err) // the file's reader has looked
			models[r.Point.Shape] = m
		}
		d = append(d, datum{r.Point, r.seconds(), r.within(turns), models[r.Point.Shape]})
	}
	return d
}

// where keeps the points that ok accepts.
func (d data) where(ok func(datum) bool) data {
	var out data
	for _, p := range d {
		if ok(p) {
			out = append(out, p)
		}
	}
	return out
}

// shapes lists the distinct shapes, in the order of measuring.
func (d data) shapes() []string {
	var v []string
	for _, p := range d {
		if !slices.Contains(v, p.Shape) {
			v = append(v, p.Shape)
		}
	}
	return v
}

// values lists the distinct values of an axis, rising.
func (d data) values(axis string) []int64 {
	var v []int64
	for _, p := range d {
		v = append(v, p.At(axis))
	}
	slices.Sort(v)
	return slices.Compact(v)
}

// split holds out a third of the points, chosen by the hash of their names and
// so always the same ones, evenly over groups. Of each group at least
// `fewest` stay to fit; points that keep accepts always do.
func (d data) split(group func(datum) string, fewest int, keep func(datum) bool) (fit, held data) {
	groups := map[string]data{}
	var order []string
	for _, p := range d {
		g := group(p)
		if _, known := groups[g]; !known {
			order = append(order, g)
		}
		groups[g] = append(groups[g], p)
	}
	out := map[string]bool{}
	debt := 0 // thirds owed by groups before
	for _, g := range order {
		members := groups[g]
		free := members.where(func(p datum) bool { return keep == nil || !keep(p) })
		slices.SortFunc(free, func(a, b datum) int {
			x, y := hash(a.Key()), hash(b.Key())
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
		debt += len(members)
		n := max(0, min(debt/3, len(free), len(members)-fewest))
		debt -= 3 * n
		for _, p := range free[:n] {
			out[p.Key()] = true
		}
	}
	for _, p := range d {
		if out[p.Key()] {
			held = append(held, p)
		} else {
			fit = append(fit, p)
		}
	}
	return fit, held
}

// together puts all points into one group.
func together(datum) string { return "" }

func byAxis(axis string) func(datum) string {
	return func(p datum) string { return fmt.Sprint(p.At(axis)) }
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// linear fits seconds = sum_j p_j x_j with p >= 0 by least squares of relative
// errors. It solves every subset of the parameters, of which there are at most
// four, and takes the best solution without a negative one: exact, and the
// same on every machine.
func linear(d data, terms ...func(datum) float64) []float64 {
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

// refine improves positive parameters of any model by least squares of log
// seconds, within bounds: Nelder-Mead over their logarithms, restarted until
// it stands still.
func refine(d data, start []float64, bounds []bound, model func(p []float64, at datum) float64) []float64 {
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
			&optimize.Settings{Converger: &optimize.FunctionConverge{Absolute: 1e-9, Relative: 1e-8, Iterations: 60 * len(start)}, FuncEvaluations: 3000 * len(start)},
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

// logErrors sums the squares of log errors of a model, as refine minimises them.
func logErrors(d data, model func(at datum) float64) float64 {
	sum := 0.0
	for _, at := range d {
		e := math.Log(model(at) / at.seconds)
		sum += e * e
	}
	return sum
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
