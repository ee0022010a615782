package hw

import "math"

// fullest returns, for n tokens, the expected maximum over ranks of the distinct experts with
// tokens, and of the token copies. The layer waits for the fullest rank. Each of R ranks has m =
// E/R experts, and an expert receives tokens with p = 1 - (1 - k/E)^n:
//
//	D = E[max of R] = sum over j < m of 1 - P(Binomial(m, p) <= j)^R
//	rows = n k / R + sigma c sqrt(R / (R-1)),  sigma^2 = n k (1/R) (1 - 1/R) (E-k)/(E-1)
//
// with at most n min(k, m) rows. c is the expected maximum of R independent standard normals; the
// ranks share n k rows, so any two correlate with -1/(R-1). All experts are equally likely and each
// token's k experts are independent. A router with preferences has a fuller rank.
func (m *Model) fullest(n float64) (distinct, rows float64) {
	k, ranks := float64(m.ExpertsPerToken), m.spread()
	distinct, rows = m.DistinctExperts(n), n*k
	if ranks == 1 {
		return distinct, rows
	}
	r, e := float64(ranks), float64(m.Experts)
	held := m.Experts / ranks
	most := math.Min(k, float64(held))
	sigma := math.Sqrt(n * k / r * (1 - 1/r) * (e - k) / max(1, e-1))
	rows = math.Min(rows/r+sigma*normalMaximum(ranks)*math.Sqrt(r/(r-1)), n*most)
	distinct = binomialMaximum(held, distinct/e, ranks)
	return math.Min(distinct, rows), rows
}

// binomialMaximum returns the expected maximum of the given number of draws from Binomial(m, p).
func binomialMaximum(m int, p float64, draws int) (mean float64) {
	if p >= 1 {
		return float64(m)
	}
	odds, below := math.Log(p)-math.Log1p(-p), 0.0
	chance := float64(m) * math.Log1p(-p) // logarithm, because (1-p)^m may underflow
	for j := range m {
		below += math.Exp(chance)
		mean += 1 - math.Pow(math.Min(below, 1), float64(draws))
		chance += odds + math.Log(float64(m-j)/float64(j+1))
	}
	return mean
}

// normalMaximum returns the expected maximum of 2, 4 or 8 standard normals (Harter, Expected values
// of normal order statistics, Biometrika 48, 1961).
func normalMaximum(draws int) float64 {
	switch draws {
	case 2:
		return 0.56419
	case 4:
		return 1.02938
	}
	return 1.42360
}
