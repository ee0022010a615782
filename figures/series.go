package figures

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// panel is the results of one model on one card: one panel of a figure.
type panel struct {
	model, gpu string
	curves     []curve
}

// curve is one system's results over rates.
type curve struct {
	system string
	points []point
}

// point is one rate's result over all seeds.
type point struct {
	rate      float64
	runs      int
	mean      float64
	low, high float64 // 95 % confidence interval of the mean; = mean for one run
	unstable  bool    // the queue grew without end in at least one run
}

// panels groups runs by model and card, then system, then rate. Panels and
// systems keep the order of the runs; rates ascend.
func panels(runs []Run, value func(*Run) float64) []panel {
	type key struct {
		model, gpu, system string
		rate               float64
	}
	values := map[key][]float64{}
	unstable := map[key]bool{}
	var out []panel
	for i := range runs {
		r := &runs[i]
		v := value(r)
		if r.Completed == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			continue // nothing to show
		}
		p := slices.IndexFunc(out, func(p panel) bool { return p.model == r.Model && p.gpu == r.GPU })
		if p < 0 {
			p = len(out)
			out = append(out, panel{model: r.Model, gpu: r.GPU})
		}
		curves := &out[p].curves
		c := slices.IndexFunc(*curves, func(c curve) bool { return c.system == r.System })
		if c < 0 {
			c = len(*curves)
			*curves = append(*curves, curve{system: r.System})
		}
		k := key{r.Model, r.GPU, r.System, r.Rate}
		if len(values[k]) == 0 {
			(*curves)[c].points = append((*curves)[c].points, point{rate: r.Rate})
		}
		values[k] = append(values[k], v)
		unstable[k] = unstable[k] || isUnstable(r.Warnings)
	}
	for _, p := range out {
		for _, c := range p.curves {
			for i := range c.points {
				k := key{p.model, p.gpu, c.system, c.points[i].rate}
				c.points[i] = summarise(k.rate, values[k], unstable[k])
			}
			slices.SortFunc(c.points, func(a, b point) int { return cmp.Compare(a.rate, b.rate) })
		}
	}
	return out
}

func summarise(rate float64, values []float64, unstable bool) point {
	n := float64(len(values))
	p := point{rate: rate, runs: len(values), mean: stat.Mean(values, nil), unstable: unstable}
	p.low, p.high = p.mean, p.mean
	if n > 1 {
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975)
		half := t * stat.StdDev(values, nil) / math.Sqrt(n)
		p.low, p.high = p.mean-half, p.mean+half
	}
	return p
}

// isUnstable finds the warning of a queue that grows without end.
func isUnstable(warnings []string) bool {
	return slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "unstable") })
}
