package dsa

import "math"

// InfiniGen picks by a margin (Lee et al., OSDI 2024). For each head it counts the candidates
// whose speculated score is at most Margin below the head's highest, in units of q·k / sqrt(d).
// The mean of these counts over the heads of the layer is the number of candidates that every
// head picks, at most a share Most, as in the authors' code. Candidates are tokens, so a block
// holds one token. Criticality is estimated from the input of the layer before.
type InfiniGen struct {
	Margin float64 // alpha
	Most   float64 // share of the candidates, in (0, 1]
}

// Limit returns 0: a margin may exclude any candidate.
func (p InfiniGen) Limit() int { return 0 }

// AtOnce implements Policy.
func (p InfiniGen) AtOnce(candidates int) int { return p.most(candidates) }

func (p *InfiniGen) most(candidates int) int {
	return min(candidates, max(1, int(p.Most*float64(candidates))))
}

// Weighs returns true: the scale of scores matters.
func (p InfiniGen) Weighs() bool { return true }

// CountAt implements ByLayer: every token is a stop.
func (p InfiniGen) CountAt(stop, n, _ int) int { return min(n, stop+1) }

// Report implements ByLayer: the number of a head's tokens within the margin.
func (p InfiniGen) Report(v *View, _ func(int) int, _ int, dst []float32) []float32 {
	highest := float32(math.Inf(-1))
	for _, s := range v.Critical {
		highest = max(highest, s)
	}
	cut, within := highest-float32(p.Margin)/v.Skew, 0
	for _, s := range v.Critical {
		if s >= cut {
			within++
		}
	}
	return append(dst, float32(within))
}

// Decide implements ByLayer.
func (p InfiniGen) Decide(n, _, _ int, mean func(i int) float64) (stop, load int) {
	stop = min(p.most(n), max(1, int(mean(0)))) - 1
	return stop, stop
}
