package patterns

import "math"

// softmaxRow returns the dense causal attention of a row, over the keys up to it.
func softmaxRow(h *Head, row int) []float64 {
	w, q, scale := make([]float64, row+1), h.query(row), 1/math.Sqrt(float64(h.D))
	most := math.Inf(-1)
	for j := range w {
		w[j] = scale * float64(dot(q, h.key(j)))
		most = math.Max(most, w[j])
	}
	sum := 0.0
	for j, x := range w {
		w[j] = math.Exp(x - most)
		sum += w[j]
	}
	for j := range w {
		w[j] /= sum
	}
	return w
}

// errors returns the error of each mask's output relative to the dense output, |y' - y| / |y| over
// the sampled rows. A mask's softmax is over the keys that it keeps.
func errors(h *Head, rows []int, masks []mask) []float64 {
	diff, norm := make([]float64, len(masks)), 0.0
	dense, sparse := make([]float64, h.D), make([]float64, h.D)
	for _, row := range rows {
		w := softmaxRow(h, row)
		clear(dense)
		h.add(dense, w, 0, row+1)
		for _, y := range dense {
			norm += y * y
		}
		for m, keeps := range masks {
			clear(sparse)
			held := 0.0
			keeps(row, func(from, to int) { held += h.add(sparse, w, from, to) })
			for i, y := range dense {
				if held > 0 {
					y -= sparse[i] / held
				}
				diff[m] += y * y
			}
		}
	}
	for m := range diff {
		diff[m] = math.Sqrt(diff[m] / norm)
	}
	return diff
}

// add adds the weighted values of some keys, and returns their weight.
func (h *Head) add(y, w []float64, from, to int) (held float64) {
	for j := from; j < to; j++ {
		held += w[j]
		for i, v := range h.value(j) {
			y[i] += w[j] * float64(v)
		}
	}
	return held
}
