package dsa

import "math"

// PSA picks by a threshold (PSA paper §3.2, Algorithm 1), each KV head by itself. It attends to
// candidates in order of estimated criticality, one microbatch at a time. It stops when the
// attended blocks hold more than Epsilon of the estimated total attention. The estimate counts
// every remaining block as the smallest attended one. Sinks and window come first; the minimum
// is taken over candidates only.
//
// With pipelined iterations (§3.3) the next microbatch is already being loaded when the
// verifying kernel ends the attention. Therefore Ahead microbatches are picked beyond Used.
type PSA struct {
	Epsilon    float64 // in (0, 1)
	Microbatch int     // m, blocks of one iteration
	Ahead      int     // microbatches loaded while one is attended to
}

// Limit returns 0: a threshold may exclude any candidate.
func (p PSA) Limit() int { return 0 }

// AtOnce implements Policy: the blocks of one iteration and the blocks being loaded (§4).
func (p PSA) AtOnce(candidates int) int { return min((1+p.Ahead)*p.Microbatch, candidates) }

// Weighs returns true: true scores decide when to stop.
func (p PSA) Weighs() bool { return true }

// Picker implements Policy.
func (p PSA) Picker() Picker { return &psa{PSA: p} }

type psa struct {
	PSA
	ranker
	seen  seen
	guess int
}

// Pick implements Picker. A KV head shared by several query heads stops when the mean of their
// estimates passes the threshold.
func (p *psa) Pick(v *View, dst []uint16) ([]uint16, int) {
	n, kept := len(v.Critical), len(v.Kept)
	if !v.Again {
		p.rank(v.Critical, p.guess+p.guess/4+16)
	}
	p.seen.begin(v)
	used := 0
	for used < n {
		used = p.picks(used, n, kept)
		if p.seen.upTo(v, used, p.at) > p.Epsilon {
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

// picks returns the number of candidates at the end of the microbatch that follows the first
// used.
func (p PSA) picks(used, n, kept int) int {
	return min(n, Microbatches(p.Microbatch, kept, used)*p.Microbatch-kept)
}

// Microbatches returns the number of started microbatches of m blocks, once the kept blocks and
// the given candidates are attended to and one more block follows.
func Microbatches(m, kept, candidates int) int { return (kept+candidates)/m + 1 }

// seen is the attention that the query heads of a KV head have accumulated.
type seen struct {
	used       int
	sum, least []float64 // by query head: AS_acc and AS_min of Algorithm 1
}

// begin attends to the kept blocks.
func (s *seen) begin(v *View) {
	s.used, s.sum, s.least = 0, s.sum[:0], s.least[:0]
	kept := v.keptWeight()
	for range v.Score {
		s.sum, s.least = append(s.sum, kept), append(s.least, math.Inf(1))
	}
}

// upTo attends to the first used candidates in order and returns the mean over query heads of
// the estimated share of attention seen (Algorithm 1, line 16).
func (s *seen) upTo(v *View, used int, at func(i int) int) float64 {
	n := len(v.Critical)
	for ; s.used < used; s.used++ {
		b := at(s.used)
		for q, scores := range v.Score {
			w := v.Weight(scores[b])
			s.sum[q] += w
			s.least[q] = min(s.least[q], w)
		}
	}
	mean := 0.0
	for q, sum := range s.sum {
		mean += sum / (sum + s.least[q]*float64(n-used))
	}
	return mean / float64(len(s.sum))
}
