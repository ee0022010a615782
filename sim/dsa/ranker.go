package dsa

import (
	"math"
	"slices"
)

// ranker orders the candidates of one step by criticality. It sorts lazily, because sorting all
// candidates would dominate the cost.
type ranker struct {
	ranks  []int64
	sorted int // ranks[:sorted] are in order, the highest first
}

// rank takes the scores of a step and sorts the wanted highest.
func (p *ranker) rank(critical []float32, wanted int) {
	p.ranks = p.ranks[:0]
	for b, s := range critical {
		p.ranks = append(p.ranks, -rank(s, b))
	}
	p.sorted = 0
	p.sort(wanted)
}

// sort sorts the first m candidates.
func (p *ranker) sort(m int) {
	rest := p.ranks[p.sorted:]
	if m -= p.sorted; m < len(rest) {
		partition(rest, m)
		rest = rest[:m]
	}
	slices.Sort(rest)
	p.sorted += len(rest)
}

// at returns the candidate of the i-th highest criticality.
func (p *ranker) at(i int) int {
	if i >= p.sorted {
		p.sort(2*i + 16)
	}
	return math.MaxUint16 - int(-p.ranks[i]&math.MaxUint16)
}

// partition moves the m smallest values to the front (quickselect).
func partition(xs []int64, m int) {
	for len(xs) > 1 {
		a, b, c := xs[0], xs[len(xs)/2], xs[len(xs)-1]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := 0, len(xs)-1
		for i <= j {
			for xs[i] < pivot {
				i++
			}
			for xs[j] > pivot {
				j--
			}
			if i <= j {
				xs[i], xs[j] = xs[j], xs[i]
				i++
				j--
			}
		}
		switch { // xs[:j+1] <= pivot <= xs[i:]
		case m <= j:
			xs = xs[:j+1]
		case m > i:
			xs, m = xs[i:], m-i
		default:
			return
		}
	}
}
