package dsa

import "math"

// Prefixes is one step seen at every size of a selection, for policies that attend to the
// candidates in order of criticality until some rule ends it. The query heads that share a KV
// head have the order in common.
type Prefixes struct {
	Order []uint16 // candidates, the most critical first
	// by query head, [0..candidates] share of the attention that so many of them hold with the kept
	// blocks
	Held    [][]float64
	Reached [][]float64 // the same by Algorithm 1's estimate, line 16
}

// Prefixes returns them.
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
