package dsa

import "math"

// Prefixes is one step evaluated at every selection size, for policies that attend to
// candidates in order of criticality until a stop rule. The query heads of a KV head share the
// order.
type Prefixes struct {
	Order []uint16 // candidates, the most critical first
	// by query head, [0..candidates] share of the attention held by the first i candidates and
	// the kept blocks
	Held    [][]float64
	Reached [][]float64 // by query head, Algorithm 1's estimate of this share (line 16)
}

// Prefixes evaluates the view at every selection size.
func (v *View) Prefixes() *Prefixes {
	n := len(v.Critical)
	var rank ranker
	rank.rank(v.Critical, n)
	p := &Prefixes{Order: make([]uint16, n)}
	for i := range n {
		p.Order[i] = uint16(rank.at(i))
	}
	for _, scores := range v.Score {
		held, reached := make([]float64, n+1), make([]float64, n+1)
		sum, least := v.keptWeight(), math.Inf(1)
		held[0] = sum
		for i, b := range p.Order {
			w := v.Weight(scores[b])
			sum += w
			least = min(least, w)
			held[i+1], reached[i+1] = sum, sum/(sum+least*float64(n-1-i))
		}
		for i := range held {
			held[i] /= sum
		}
		p.Held, p.Reached = append(p.Held, held), append(p.Reached, reached)
	}
	return p
}
