package reference

import "math"

// LayerNorm returns r(r((x - mean) / sqrt(variance + eps)) * weight + bias) of one row.
func LayerNorm(x, weight, bias []float64, eps float64, r Round) []float64 {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	inverse := 1 / math.Sqrt(square/float64(len(x))+eps)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = r(r((v-mean)*inverse)*weight[i] + bias[i])
	}
	return out
}

// RopePart rotates the first 2 len(angle) values of a head in place.
func RopePart(head, angle []float64, r Round) { copy(head, Rope(head, angle, r)) }

// LatentRow returns the cached row of a token in latent attention: the normed latent, and the
// rotated part of the key. x is [len(weight) + 2 len(angle)].
func LatentRow(x, weight, angle []float64, eps float64, r Round) []float64 {
	row := RMSNorm(x[:len(weight)], weight, eps, r)
	return append(row, Rope(x[len(weight):], angle, r)...)
}

// IndexKey returns the indexer's cached key of a token.
func IndexKey(x, weight, bias, angle []float64, eps float64, r Round) []float64 {
	key := LayerNorm(x, weight, bias, eps, r)
	RopePart(key, angle, r)
	return key
}

// IndexScores returns scale sum_h weight_h max(0, q_h . key) of every key: q is [len(weight)][dim],
// keys [tokens][dim].
func IndexScores(q, weight, keys []float64, scale float64) []float64 {
	dim := len(q) / len(weight)
	scores := make([]float64, len(keys)/dim)
	for t := range scores {
		for h, w := range weight {
			scores[t] += scale * w * max(0, dot(q[h*dim:][:dim], keys[t*dim:]))
		}
	}
	return scores
}

// LatentAttend returns absorbed attention of one head to the listed rows of rows, each
// [len(q) + len(rope)]: the softmax of scale (q . latent + rope . rotated) over latents.
func LatentAttend(q, rope, rows []float64, list []int32, scale float64) []float64 {
	width, state := len(q)+len(rope), NewSoftmax(len(q))
	for _, t := range list {
		row := rows[int(t)*width:][:width]
		state.Add(scale*(dot(q, row)+dot(rope, row[len(q):])), row[:len(q)])
	}
	out := make([]float64, len(q))
	state.Result(out)
	return out
}
