package emulator

import (
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// MInference's attention: blocks of 64 keys, tiles of 128 queries in two halves.
const (
	miBlock  = 64
	miTile   = 128
	miKey    = 1<<30 - 1 // of an entry of columns; bit 30 + h: half h does not see it
	miHidden = 30
)

func miTiles(queries int32) int { return (int(queries) + miTile - 1) / miTile }

// miAttend attends to the keys of each query, in the order of the lists.
func miAttend(m *access, a *cuda.MIAttendArgs) {
	m.need(a.Prefill.HeadDim == 128 && a.Prefill.Table == 0, "128 values a head and tensors")
	m.need((a.Blocks == 0) == (a.Counts == 0) && (a.Blocks == 0) == (a.Columns == 0),
		"blocks, columns and counts, or none")
	m.need(a.Sink >= 0 && a.Window >= 0, "sink and window >= 0")
	p, r := &a.Prefill, prefillOf(m, &a.Prefill, true)
	for head := range r.HeadsQ {
		for i := range r.QTokens {
			state, out := reference.NewSoftmax(r.Dim), make([]float64, r.Dim)
			query := r.Q[(i*r.HeadsQ+head)*r.Dim:][:r.Dim]
			miSeen(m, a, head, i, func(key int) {
				at := (key*r.HeadsKV + head/r.Group()) * r.Dim
				state.Attend(query, r.K[at:at+r.Dim], r.V[at:at+r.Dim], r.Scale)
			})
			state.Result(out)
			store(m.halves("Out", p.Out, i*int(p.OutTokenStride)+head*int(p.OutHeadStride), r.Dim), out)
		}
	}
}

// miSeen calls f for each key that a query attends to.
func miSeen(m *access, a *cuda.MIAttendArgs, head, query int, f func(key int)) {
	position := int(a.Prefill.Prefix) + query
	if a.Blocks == 0 {
		for key := range position + 1 {
			if a.Window == 0 || position-key < int(a.Window) || key < int(a.Sink) {
				f(key)
			}
		}
		return
	}
	half := query / miBlock % 2
	blocks, columns := miLists(m, a, head, query/miTile, half)
	for _, start := range blocks {
		for key := int(start); key < min(int(start)+miBlock, position+1); key++ {
			f(key)
		}
	}
	for _, e := range columns {
		if key := int(e & miKey); uint32(e)>>(miHidden+half)&1 == 0 && key <= position {
			f(key)
		}
	}
}

// miLists returns the starts of a half's blocks, and the tile's columns.
func miLists(m *access, a *cuda.MIAttendArgs, head, tile, half int) (blocks, columns []int32) {
	row := head*miTiles(a.Prefill.QTokens) + tile
	m.aligned("Counts", a.Counts, 16)
	n := view[int32](m, "Counts", a.Counts, row*4, 4)
	all := int(n[0] + n[1] + n[2])
	if slices.Min(n) < 0 || all > int(a.BlockStride) || int(n[3]) > int(a.ColumnStride) {
		m.fault("Counts", a.Counts, 16, "%v in lists of %d blocks and %d columns", n, a.BlockStride,
			a.ColumnStride)
	}
	list := view[int32](m, "Blocks", a.Blocks, row*int(a.BlockStride), all)
	for _, start := range list {
		if start < 0 {
			m.fault("Blocks", a.Blocks, 4, "a block starts at %d", start)
		}
	}
	own := list[n[0]:][:n[1]]
	if half == 1 {
		own = list[n[0]+n[1]:]
	}
	return slices.Concat(list[:n[0]], own), view[int32](m, "Columns", a.Columns,
		row*int(a.ColumnStride), int(n[3]))
}

func miPool(m *access, a *cuda.MIPoolArgs) {
	m.need(a.TokenStride%8 == 0 && a.HeadStride%8 == 0, "strides that are multiples of 8")
	const dim = 128
	n := (int(a.Tokens) + miBlock - 1) / miBlock * dim
	for head := range int(a.Heads) {
		var x []float64
		for t := range int(a.Tokens) {
			x = append(x, m.tensor("X", a.X, t*int(a.TokenStride)+head*int(a.HeadStride), dim)...)
		}
		store(m.halves("Out", a.Out, head*n, n), reference.Pool(x, dim))
	}
}

// miScoreStride returns the number of blocks in a row of scores.
func miScoreStride(a *cuda.MIBlocksArgs) int64 {
	blocks := (int64(a.Prefix) + int64(a.QTokens) + miBlock - 1) / miBlock
	return max(1, (blocks+miBlock-1)/miBlock*miBlock)
}

func miBlocks(m *access, a *cuda.MIBlocksArgs) {
	m.heads(a.HeadsQ, a.HeadsKV, 128)
	m.need(a.QTokens > 0 && a.Prefix >= 0, "tokens")
	m.need(a.Top > 0 && a.Top <= cuda.TopKMax && a.BlockStride >= 2*a.Top,
		"a list of twice the chosen blocks, of which 1 to 4096")
	m.need(a.ScoreCount/miScoreStride(a) >= min((int64(a.QTokens)+miBlock-1)/miBlock, miBlock),
		"scratch memory of 64 rows of scores")
	const dim = 128
	rows := (int(a.QTokens) + miBlock - 1) / miBlock
	blocks := (int(a.Prefix+a.QTokens) + miBlock - 1) / miBlock
	for head := range int(a.HeadsQ) {
		q := m.tensor("Q", a.Q, head*rows*dim, rows*dim)
		k := m.tensor("K", a.K, head/int(a.HeadsQ/a.HeadsKV)*blocks*dim, blocks*dim)
		lists := make([]reference.RowLists, rows+1)
		for row := range rows {
			scores := view[float32](m, "Scores", a.Scores, 0, blocks)
			own := make([]float64, blocks)
			for b := range own {
				scores[b] = 0
				for d := range dim {
					scores[b] += float32(q[row*dim+d] * k[b*dim+d])
				}
				own[b] = float64(scores[b])
			}
			lists[row].Blocks = reference.TopBlocks(own, row, int(a.QTokens), int(a.Prefix),
				int(a.Top))
		}
		for tile := range miTiles(a.QTokens) {
			list, _, counts := reference.TileLists(lists[2*tile], lists[2*tile+1])
			row := head*miTiles(a.QTokens) + tile
			copy(view[int32](m, "Blocks", a.Blocks, row*int(a.BlockStride), len(list)), list)
			copy(view[int32](m, "Counts", a.Counts, row*4, 4), counts[:])
		}
	}
}
