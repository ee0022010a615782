package reference

import "math"

// Softmax is a running softmax-weighted sum of one query: after adding (score, value) pairs,
//
//	Max = max score      Sum = sum exp(score - Max)      Out = sum exp(score - Max) value
//
// Two sums over disjoint tokens merge into the sum over both, in any order (the algebra of split,
// chunked and progressive attention).
type Softmax struct {
	Max, Sum float64
	Out      []float64
}

// NewSoftmax returns an empty sum for values of length dim.
func NewSoftmax(dim int) Softmax {
	return Softmax{Max: math.Inf(-1), Out: make([]float64, dim)}
}

// Add attends to one more token.
func (s *Softmax) Add(score float64, value []float64) {
	s.rescale(math.Max(s.Max, score))
	w := math.Exp(score - s.Max)
	s.Sum += w
	for d, v := range value {
		s.Out[d] += w * v
	}
}

// Attend adds the tokens of keys and values, each [tokens][dim], for a query.
func (s *Softmax) Attend(query, keys, values []float64, scale float64) {
	dim := len(query)
	for at := 0; at < len(keys); at += dim {
		s.Add(scale*dot(query, keys[at:at+dim]), values[at:at+dim])
	}
}

// Merge adds the tokens of other.
func (s *Softmax) Merge(other Softmax) {
	if other.Sum == 0 {
		return
	}
	s.rescale(math.Max(s.Max, other.Max))
	w := math.Exp(other.Max - s.Max)
	s.Sum += w * other.Sum
	for d, v := range other.Out {
		s.Out[d] += w * v
	}
}

// Result writes the normalised output, zeros for no tokens, and returns the natural log of the sum
// of exponentials.
func (s *Softmax) Result(out []float64) (lse float64) {
	if s.Sum == 0 {
		clear(out)
		return math.Inf(-1)
	}
	for d, v := range s.Out {
		out[d] = v / s.Sum
	}
	return s.Max + math.Log(s.Sum)
}

func (s *Softmax) rescale(top float64) {
	if top == s.Max || s.Sum == 0 {
		s.Max = top
		return
	}
	w := math.Exp(s.Max - top)
	s.Sum *= w
	for d := range s.Out {
		s.Out[d] *= w
	}
	s.Max = top
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
