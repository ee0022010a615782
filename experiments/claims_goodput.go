package experiments

import (
	"fmt"
	"strconv"
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

// goodputRatio is the ratio of two systems' mean goodput over seeds.
func goodputRatio(name, over, under string) measurement {
	return measurement{from: []string{name}, measure: func(r *labResults) (float64, error) {
		rows, err := r.table(name)
		if err != nil {
			return 0, err
		}
		mean := func(system string) (float64, error) {
			sum, n := 0.0, 0
			for _, row := range rows {
				if row["system"] != system {
					continue
				}
				v, err := strconv.ParseFloat(row["goodput_req_s"], 64)
				if err != nil {
					return 0, err
				}
				sum, n = sum+v, n+1
			}
			if n == 0 || sum == 0 {
				return 0, fmt.Errorf("%s: no goodput of %s", name, system)
			}
			return sum / float64(n), nil
		}
		a, err := mean(over)
		if err != nil {
			return 0, err
		}
		b, err := mean(under)
		return a / b, err
	}}
}
