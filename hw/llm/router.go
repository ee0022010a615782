package llm

import "math"

// Router is how often a mixture's router sends a token to each of a layer's experts. Experts are
// not equally likely: their popularity is log-normal, and each token's choices are independent of
// other tokens. So a batch reads fewer experts than with equally likely ones, and of ranks that
// hold experts each, one is fuller. An expert of weight w is one of a token's k with
//
//	p = 1 - exp(-c w),  with c so that the sum of p over experts is k
type Router struct {
	experts float64
	chosen  [routerClasses]float64 // p of an expert in each class of popularity
}

const (
	routerClasses = 16 // of equally many experts
	// popularitySpread is the standard deviation of the logarithm of popularity. The counts of 16
	// experts of DeepSeek-R1 in SGLang's pull request 5524 have 0.59.
	popularitySpread = 0.6
)

// Router returns the router of a layer with experts.
func (m *Model) Router() Router {
	r := Router{experts: float64(m.Experts)}
	if m.ExpertsPerToken >= m.Experts {
		for i := range r.chosen {
			r.chosen[i] = 1
		}
		return r
	}
	mean := float64(m.ExpertsPerToken) / r.experts
	low, high := mean, 1e4 // of c; popularity is above 1 for half of the experts
	low /= 1e4
	for range 64 {
		c, sum := math.Sqrt(low*high), 0.0
		for i := range r.chosen {
			quantile := (float64(i) + 0.5) / routerClasses
			weight := math.Exp(popularitySpread * math.Sqrt2 * math.Erfinv(2*quantile-1))
			r.chosen[i] = -math.Expm1(-c * weight)
			sum += r.chosen[i]
		}
		if sum < mean*routerClasses {
			low = c
		} else {
			high = c
		}
	}
	return r
}

// Distinct returns the expected number of experts that receive at least one of n tokens.
func (r *Router) Distinct(n float64) (sum float64) {
	if n <= 0 {
		return 0
	}
	for _, p := range r.chosen {
		sum -= math.Expm1(n * math.Log1p(-p))
	}
	return sum * r.experts / routerClasses
}

// Variance returns the variance of p over experts.
func (r *Router) Variance() float64 {
	sum, squares := 0.0, 0.0
	for _, p := range r.chosen {
		sum += p
		squares += p * p
	}
	mean := sum / routerClasses
	return squares/routerClasses - mean*mean
}
