package dsa

import (
	"math"
	"slices"
)

// PSA picks by a threshold (PSA paper §3.2, Algorithm 1): it attends to the
// candidates in order of estimated criticality, a microbatch at a time, and ends
// when what it has attended to holds more than Epsilon of an estimate of all
// attention: every block not attended to is taken to hold as much as the least
// one so far. Sinks and window, where kept, come first; they are no candidates,
// so the least block is sought among those after them.
//
// With pipelined iterations (§3.3) the microbatch after the last is being
// loaded by the time the verifying kernel says so: Ahead microbatches are
// picked beyond Used.
type PSA struct {
	Epsilon    float64 // in (0, 1)
	Microbatch int     // m, blocks of one iteration
	Ahead      int     // microbatches loaded while one is attended to
}

// Limit returns 0: a threshold may leave out any candidate.
func (p PSA) Limit() int { return 0 }

// AtOnce implements Policy: what one iteration attends to beside what is being
// loaded (§4).
func (p PSA) AtOnce(candidates int) int { return min((1+p.Ahead)*p.Microbatch, candidates) }

// Weighs says that true scores decide when to end.
func (p PSA) Weighs() bool { return true }

// Picker implements Policy.
func (p PSA) Picker() Picker { return &psa{PSA: p} }

type psa struct {
	PSA
	ranks  []int64
	sorted int // ranks[:sorted] are in order, the highest first
	guess  int
}

// Pick implements Picker.
func (p *psa) Pick(v *View, dst []uint16) ([]uint16, int) {
	n, kept := len(v.Critical), len(v.Kept)
	p.rank(v)
	var sum float64 // AS_acc
	for _, s := range v.Kept {
		sum += v.Weight(s)
	}
	least := math.Inf(1) // AS_min
	used := 0
	for used < n {
		end := min(n, Microbatches(p.Microbatch, kept, used)*p.Microbatch-kept)
		for ; used < end; used++ {
			w := v.Weight(v.Score[p.at(used)])
			sum += w
			least = min(least, w)
		}
		if sum > p.Epsilon*(sum+least*float64(n-used)) {
			break
		}
	}
	dst = dst[:0]
	for i := range min(n, used+p.Ahead*p.Microbatch) {
		dst = append(dst, uint16(p.at(i)))
	}
	p.guess = len(dst)
	return dst, used
}

// Microbatches returns how many microbatches of m blocks have begun once the
// kept blocks and so many candidates are attended to and one more follows.
func Microbatches(m, kept, candidates int) int { return (kept+candidates)/m + 1 }

// rank prepares the order of the candidates. Sorting them all would be most of
// the work, and the last step tells how many will be wanted. Views of one step
// have it in common.
func (p *psa) rank(v *View) {
	if v.Again {
		return
	}
	p.ranks = p.ranks[:0]
	for b, s := range v.Critical {
		p.ranks = append(p.ranks, -rank(s, b))
	}
	p.sorted = 0
	p.sort(p.guess + p.guess/4 + 16)
}

// sort brings the first m candidates into order.
func (p *psa) sort(m int) {
	rest := p.ranks[p.sorted:]
	if m -= p.sorted; m < len(rest) {
		partition(rest, m)
		rest = rest[:m]
	}
	slices.Sort(rest)
	p.sorted += len(rest)
}

// at returns the candidate of the i-th highest criticality.
func (p *psa) at(i int) int {
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
