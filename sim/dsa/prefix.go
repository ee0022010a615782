package dsa

import "math"

// Prefixes is one step seen at every size of a selection, for policies that
// attend to the candidates in order of criticality until some rule ends it.
type Prefixes struct {
	Order   []uint16  // candidates, the most critical first
	Held    []float64 // [0..candidates] share of the attention that so many of them hold with the kept blocks
	Reached []float64 // the same by Algorithm 1's estimate, line 16
}

// Prefixes returns them.
func (v *View) Prefixes() *Prefixes {
	n := len(v.Critical)
	rank := psa{}
	rank.rank(v)
	rank.sort(n)
	p := &Prefixes{make([]uint16, n), make([]float64, n+1), make([]float64, n+1)}
	sum := 0.0
	for _, s := range v.Kept {
		sum += v.Weight(s)
	}
	p.Held[0] = sum
	least := math.Inf(1)
	for i := range n {
		b := rank.at(i)
		w := v.Weight(v.Score[b])
		sum += w
		least = min(least, w)
		p.Order[i], p.Held[i+1] = uint16(b), sum
		p.Reached[i+1] = sum / (sum + least*float64(n-1-i))
	}
	for i := range p.Held {
		p.Held[i] /= sum
	}
	return p
}
