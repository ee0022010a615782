package experiments

import (
	"fmt"

	"gonum.org/v1/gonum/stat"
)

// goodputSteps are the systems of Fig. 13, each of which adds one thing.
func goodputSteps() []string {
	return []string{"vllm", "vllm-s", "vllm-so", "vllm-so-ft", "vllm-so-ft-wc", "sparseserve"}
}

// addGoodput adds what is measured on the goodput search.
func addGoodput(all map[measureKey]measurement) {
	steps := goodputSteps()
	last := steps[len(steps)-1]
	for i, m := range []struct{ id, from string }{{"ss-fig13-lwm", "fig13a"}, {"ss-fig13-llama", "fig13b"}} {
		for j := 1; j < len(steps); j++ {
			all[measureKey{m.id, j - 1}] = goodputRatio(m.from, steps[j], steps[j-1])
		}
		all[measureKey{"ss-fig13-total", i}] = goodputRatio(m.from, last, steps[0])
	}
}

// goodputRatio is the ratio of two systems' goodput.
func goodputRatio(name, over, under string) measurement {
	return measurement{from: []string{name}, measure: func(r *labResults) (float64, error) {
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
func (r *labResults) goodput(name, system string) (float64, error) {
	found, err := r.plan(name)
	if err != nil {
		return 0, err
	}
	for i := range found {
		g := &found[i]
		if g.System != system {
			continue
		}
		rate := g.Goodput
		if r.left != nil {
			var own []float64
			for j, seed := range g.Seeds {
				if seed != *r.left {
					own = append(own, g.SeedGoodputs[j])
				}
			}
			rate = stat.Mean(own, nil)
		}
		if !(rate > 0) {
			return 0, fmt.Errorf("%s: no goodput of %s", name, system)
		}
		return rate, nil
	}
	return 0, fmt.Errorf("%s: no goodput of %s", name, system)
}
