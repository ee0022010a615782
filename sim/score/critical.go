package score

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
)

// parts are the terms of a candidate's criticality.
type parts struct {
	block  blockColumn
	errors [2]blockColumn // of the true score, and of another digest's estimate
}

// errorColumn is the error of a block, with unit variance.
func (s *Process) errorColumn(family, b int, what uint64) blockColumn {
	h := des.Hash(s.seed, uint64(family), uint64(b), what)
	return blockColumn{phase: int32(h >> 10 % scoreSteps), row: s.errors[h%errorRows]}
}

func (c *blockColumn) at(t int) float32 { return c.row[(int(c.phase)+t)%scoreSteps] }

// Critical implements dsa.Scores. The returned function caches the blocks requested so far.
func (s *Process) Critical(sheet *dsa.Sheet) func(family, n, b, t int) float32 {
	var families [][]parts
	page, estimate := pageOf(sheet), s.p.errorOf(sheet.Digest)
	return func(family, n, b, t int) float32 {
		for len(families) <= family {
			families = append(families, nil)
		}
		for i := len(families[family]); i <= b; i++ {
			families[family] = append(families[family], parts{
				s.candidate(family, i, sheet),
				[2]blockColumn{s.errorColumn(family, i/page, scoreError),
					s.errorColumn(family, i, digestError)},
			})
		}
		c := &families[family][b]
		mu := c.block.mu
		if s.newest(b, n, sheet) {
			mu += float32(s.p.Recent)
		}
		score := mu + c.block.at(t)
		if estimate > 0 {
			score += float32(s.p.Error) * c.errors[0].at(t)
			score += float32(estimate) * c.errors[1].at(t)
		}
		return score
	}
}
