package score

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
)

// pageTokens is the block size for which the score process was fitted.
const pageTokens = 32

// skewClasses is the number of values to which the skew of heads is rounded.
const skewClasses = 8

func (p *Params) errorOf(d dsa.Digest) float64 {
	switch d {
	case dsa.MinMax:
		return p.MinMaxError
	case dsa.Mean:
		return p.MeanError
	case dsa.Representative:
		return p.RepresentativeError
	case dsa.Speculated:
		return p.SpeculationError
	}
	return 0
}

// Classes implements dsa.Scores.
func (s *Process) Classes() int { return skewClasses }

// Skew implements dsa.Scores.
func (s *Process) Skew(class int) float64 { return s.skews[class] }

// skews returns the skew of each class: the medians of equal shares of all heads.
func (p *Params) skews() []float64 {
	all := math.Hypot(p.SkewLayers, p.SkewHeads)
	out := make([]float64, skewClasses)
	for c := range out {
		out[c] = p.Skew * math.Exp(all*distuv.UnitNormal.Quantile((float64(c)+0.5)/skewClasses))
	}
	return out
}

// Class implements dsa.Scores.
func (s *Process) Class(layer, head int) int {
	all := math.Hypot(s.p.SkewLayers, s.p.SkewHeads)
	if all == 0 {
		return 0
	}
	z := s.p.SkewLayers*normal(des.Hash(s.seed, uint64(layer), 0x1a7e4)) +
		s.p.SkewHeads*normal(des.Hash(s.seed, uint64(layer), uint64(head), 0x4ead))
	return min(skewClasses-1, int(skewClasses*distuv.UnitNormal.CDF(z/all)))
}

// Hash keys of errors.
const (
	scoreError  = 0xe44
	digestError = 0xd16
	queryError  = 0x9e7
)

// errorsOf returns the errors of candidates. Candidates of one page share an error.
func (s *Process) errorsOf(family, page int, what uint64) func(b int) blockColumn {
	return func(b int) blockColumn { return s.errorColumn(family, b/page, what) }
}

// add adds the scaled columns of n candidates to scores, [steps][n].
func add(dst []float32, n, first int, scale float32, column func(b int) blockColumn) {
	for b := range n {
		c := column(b)
		at := (int(c.phase) + first) % scoreSteps
		for i := b; i < len(dst); i += n {
			dst[i] += scale * (c.mu + c.row[at])
			if at++; at == scoreSteps {
				at = 0
			}
		}
	}
}

// perQueryHead derives the scores of the query heads that share a KV head from the scores of
// the KV head. common may be the slice of the first query head.
func (s *Process) perQueryHead(family, n int, sheet *dsa.Sheet, heads *[][]float32,
	common []float32) {
	queries := max(1, sheet.Queries)
	for len(*heads) < queries {
		*heads = append(*heads, nil)
	}
	*heads = (*heads)[:queries]
	for q := queries - 1; q >= 0 && queries > 1; q-- {
		own := append((*heads)[q][:0], common...)
		if (*heads)[q] = own; sheet.Apart {
			s.depart(own, n, family, q, sheet.First)
		} else {
			add(own, n, sheet.First, float32(s.p.Group),
				s.errorsOf(family, 1, queryError+uint64(q)<<16))
		}
	}
}

// depart adds the difference of a query head that selects for itself to scores, [steps][n]. The
// difference is a separate process with the same law as the KV head's. The sum has this law
// too, except for its spread, so each query head's selections keep the published locality.
func (s *Process) depart(dst []float32, n, family, q, first int) {
	p := &s.p
	variance := 1 + p.Drift*p.Drift + p.Jump*p.Jump + p.Noise*p.Noise
	scale := float32(p.Group / math.Sqrt(variance))
	add(dst, n, first, scale, func(b int) blockColumn { return s.block(family+(q+1)<<32, b) })
}

// fillKept writes the true scores of sinks and window, and the skew of every step. Only the first
// sink and the newest full block have a raised score. The last block of the window is open.
func (s *Process) fillKept(family int, sheet *dsa.Sheet) {
	kept := sheet.Sinks + sheet.Window
	columns := make([]blockColumn, kept)
	for i := range columns {
		columns[i] = s.block(family, 1<<20+i)
		switch i {
		case 0:
			if sheet.Sinks > 0 {
				columns[i].mu += float32(s.p.Sink)
			}
		case kept - 2:
			if sheet.Window > 1 {
				columns[i].mu += float32(s.p.Recent)
			}
		}
	}
	sheet.Kept = resize(sheet.Kept, sheet.Steps*kept)
	write(sheet.Kept, columns, sheet.First)
	sheet.Skew = resize(sheet.Skew, sheet.Steps)
	h := des.Hash(s.seed, uint64(family), 0x5ce3)
	row := s.errors[h%errorRows]
	for t := range sheet.Skew {
		sheet.Skew[t] = float32(
			math.Exp(s.p.SkewTokens * float64(row[(int(h>>10%scoreSteps)+sheet.First+t)%scoreSteps])))
	}
}

func resize(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n, n+n/4)
	}
	return x[:n]
}
