package papers

import (
	"fmt"
	"math"
	"strconv"
)

// addMInference adds what the MInference paper says of prefill.
func addMInference(all map[measureKey]measurement) {
	add := func(id string, index int, bound, from string, f func(*results) (float64, error)) {
		all[measureKey{id, index}] = measurement{from: []string{from}, bound: bound, measure: f}
	}
	for i, tokens := range []int{100_000, 300_000, 500_000, 1_000_000} {
		add("mi-fig1b", i, "", "mi-fig1b", func(r *results) (float64, error) {
			dense, err := r.promptSeconds("FlashAttention-2", 1, tokens)
			if err != nil {
				return 0, err
			}
			sparse, err := r.promptSeconds("MInference", 1, tokens)
			return dense / sparse, err
		})
	}
	all[measureKey{"mi-8gpu", 0}] = measurement{from: []string{"mi-fig1b"},
		measure: func(r *results) (float64, error) {
			return r.promptSeconds("MInference", 8, 1_000_000)
		},
		plain: func(r *results) (float64, error) { // eight cards at best
			one, err := r.promptSeconds("FlashAttention-2", 1, 1_000_000)
			return one / 8, err
		}}
	for i, c := range []struct{ id, pattern string }{{"mi-fig10-vs", "vertical-slash"},
		{"mi-fig10-bs", "block-sparse"}} {
		add(c.id, 0, "", "mi-fig10", func(r *results) (float64, error) {
			dense, err := r.headTimes("dense")
			if err != nil {
				return 0, err
			}
			sparse, err := r.headTimes(c.pattern)
			return (dense[0] + dense[1]) / (sparse[0] + sparse[1]), err
		})
		add("mi-fig10-index", i, "", "mi-fig10", func(r *results) (float64, error) {
			ms, err := r.headTimes(c.pattern)
			return ms[1] / (ms[0] + ms[1]), err
		})
	}
	for i, tokens := range []int{200_000, 500_000} {
		add("mi-fig12", i, above, "mi-fig10", func(r *results) (float64, error) {
			least := math.Inf(1)
			for _, pattern := range []string{"a-shape", "vertical-slash", "block-sparse"} {
				v, err := r.column("mi-fig10", "sparsity",
					map[string]string{"pattern": pattern, "tokens": strconv.Itoa(tokens)})
				if err != nil {
					return 0, err
				}
				least = math.Min(least, v[0])
			}
			return least, nil
		})
	}
}

// promptSeconds is the time of a prompt of Fig. 1b, mean over seeds.
func (r *results) promptSeconds(system string, gpus, tokens int) (float64, error) {
	v, err := r.column("mi-fig1b", "seconds",
		map[string]string{"system": system, "gpus": fmt.Sprint(gpus), "tokens": fmt.Sprint(tokens)})
	sum := 0.0
	for _, s := range v {
		sum += s / float64(len(v))
	}
	return sum, err
}

// headTimes are the kernel and the index of a head of Fig. 10 at 1M tokens, ms.
func (r *results) headTimes(pattern string) (ms [2]float64, err error) {
	for i, column := range []string{"kernel_ms", "index_ms"} {
		v, err := r.column("mi-fig10", column, map[string]string{"pattern": pattern, "tokens": "1000000"})
		if err != nil {
			return ms, err
		}
		ms[i] = v[0]
	}
	return ms, nil
}
