package papers

import (
	"fmt"
	"reflect"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/experiments/capacity"
)

// goodputSteps are the systems of Fig. 13, each of which adds one thing.
func goodputSteps() []string {
	return []string{"vllm", "vllm-s", "vllm-so", "vllm-so-ft", "vllm-so-ft-wc", "sparseserve"}
}

// addGoodput adds what is measured on the goodput search.
func addGoodput(all map[measureKey]measurement) {
	steps := goodputSteps()
	last := steps[len(steps)-1]
	for i, m := range []struct{ id, from string }{{"ss-fig13-lwm", "fig13a"},
		{"ss-fig13-llama", "fig13b"}} {
		for j := 1; j < len(steps); j++ {
			all[measureKey{m.id, j - 1}] = goodputRatio(m.from, steps[j], steps[j-1])
		}
		all[measureKey{"ss-fig13-total", i}] = goodputRatio(m.from, last, steps[0])
	}
	addCapacities(all)
}

// addCapacities adds PSA's Fig. 6: capacity over another system's, the mean over
// sets, or the largest where the paper says "up to".
func addCapacities(all map[measureKey]measurement) {
	for i, from := range [][2]string{{"psa-fig6a", "psa-fig6b"}, {"psa-fig6c", "psa-fig6d"}} {
		all[measureKey{"psa-fig6-strict-vllm", i}] = capacityRatio(from[0], "vllm", meanOf)
		all[measureKey{"psa-fig6-relaxed-vllm", i}] = capacityRatio(from[1], "vllm",
			slices.Max[[]float64])
		all[measureKey{"psa-fig6-strict-sparse", i}] = capacityRatio(from[0], "vllm-sparse",
			slices.Max[[]float64])
		all[measureKey{"psa-fig6-relaxed-sparse", i}] = capacityRatio(from[1], "vllm-sparse",
			slices.Max[[]float64])
	}
}

func meanOf(x []float64) float64 { return stat.Mean(x, nil) }

// capacityRatio is PSA's goodput over another system's, over the sets.
func capacityRatio(name, under string, over func([]float64) float64) measurement {
	return measurement{from: []string{name}, measure: func(r *results) (float64, error) {
		found, err := r.plan(name)
		if err != nil {
			return 0, err
		}
		var ratios []float64
		for i := range found {
			if found[i].System != "vllm-psa" {
				continue
			}
			j := slices.IndexFunc(found, func(g capacity.Goodput) bool {
				return g.System == under && reflect.DeepEqual(g.Axes, found[i].Axes)
			})
			if j < 0 {
				return 0, fmt.Errorf("%s: no goodput of %s at %v", name, under, found[i].Axes)
			}
			a, b := r.goodputOf(&found[i]), r.goodputOf(&found[j])
			if !(a > 0 && b > 0) {
				continue // neither can be said to be a multiple of nothing
			}
			ratios = append(ratios, a/b)
		}
		if len(ratios) == 0 {
			return 0, fmt.Errorf("%s: no goodput of vllm-psa to compare with that of %s", name, under)
		}
		return over(ratios), nil
	}}
}

// goodputOf is the goodput of a candidate as in goodput.
func (r *results) goodputOf(g *capacity.Goodput) float64 {
	if r.left == nil {
		return g.Goodput
	}
	var own []float64
	for j, seed := range g.Seeds {
		if seed != *r.left {
			own = append(own, g.SeedGoodputs[j])
		}
	}
	return stat.Mean(own, nil)
}

// goodputRatio is the ratio of two systems' goodput.
func goodputRatio(name, over, under string) measurement {
	return measurement{from: []string{name}, measure: func(r *results) (float64, error) {
		a, err := r.goodput(name, over)
		if err != nil {
			return 0, err
		}
		b, err := r.goodput(name, under)
		return a / b, err
	}}
}

// goodput is that of a system by the mean over seeds. With a seed left out it
// is the mean of the others' own, so that the interval is that of the seeds' own.
func (r *results) goodput(name, system string) (float64, error) {
	found, err := r.plan(name)
	if err != nil {
		return 0, err
	}
	for i := range found {
		g := &found[i]
		if g.System != system {
			continue
		}
		rate := r.goodputOf(g)
		if !(rate > 0) {
			return 0, fmt.Errorf("%s: no goodput of %s", name, system)
		}
		return rate, nil
	}
	return 0, fmt.Errorf("%s: no goodput of %s", name, system)
}
