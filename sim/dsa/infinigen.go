package dsa

import "math"

// InfiniGen picks by a margin (Lee et al., OSDI 2024): every candidate whose
// speculated attention score lies at most Margin below the highest, in units of
// q·k / sqrt(d). Its candidates are tokens, so its blocks hold one, and its
// criticality is what the input of the layer before tells. Not more than Most of
// the candidates are taken, the highest first.
type InfiniGen struct {
	Margin float64 // alpha
	Most   float64 // share of the candidates, in (0, 1]
}

// Limit returns 0: a margin may leave out any candidate.
func (p InfiniGen) Limit() int { return 0 }

// AtOnce implements Policy.
func (p InfiniGen) AtOnce(candidates int) int { return p.most(candidates) }

func (p *InfiniGen) most(candidates int) int {
	return min(candidates, max(1, int(p.Most*float64(candidates))))
}

// Weighs says that the scale of scores matters.
func (p InfiniGen) Weighs() bool { return true }

// Picker implements Policy.
func (p InfiniGen) Picker() Picker { return &infiniGen{InfiniGen: p} }

type infiniGen struct {
	InfiniGen
	top topK
}

// Pick implements Picker.
func (p *infiniGen) Pick(v *View, dst []uint16) ([]uint16, int) {
	dst = dst[:0]
	highest := float32(math.Inf(-1))
	for _, s := range v.Critical {
		highest = max(highest, s)
	}
	cut := highest - float32(p.Margin)/v.Skew
	for b, s := range v.Critical {
		if s >= cut {
			dst = append(dst, uint16(b))
		}
	}
	if most := p.most(len(v.Critical)); len(dst) > most {
		p.top.k = most
		dst = p.top.pick(v.Critical, dst[:0])
	}
	return dst, len(dst)
}
