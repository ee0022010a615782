package score

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
)

// page returns the tokens of a page as candidates of a sheet. Token i of a page of score S has
// score S + w_i. The w_i are normal with standard deviation Within, shifted so that the page
// holds as much attention as a block of score S at the median skew. In the first page only the
// first token has the sink's score.
func (s *Process) page(family, page int, sheet *dsa.Sheet) [pageTokens]blockColumn {
	var columns [pageTokens]blockColumn
	shared, sum := s.block(family, page), 0.0
	for i := range columns {
		w := s.p.Within * normal(des.Hash(s.seed, uint64(family), uint64(page*pageTokens+i), 0x70c))
		sum += math.Exp(s.p.Skew * w)
		columns[i] = blockColumn{shared.mu + float32(w), shared.phase, shared.row}
	}
	shift := float32(math.Log(sum) / s.p.Skew)
	for i := range columns {
		columns[i].mu -= shift
	}
	if page == 0 && sheet.Sinks == 0 {
		columns[0].mu = shared.mu + float32(s.p.Sink)
	}
	return columns
}
