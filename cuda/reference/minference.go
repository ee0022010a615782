package reference

import (
	"math"
	"slices"
)

// MInference's selections, for one head each, in plain Go. Blocks are 64 keys, tiles 128 queries in
// two halves of 64.
const (
	miBlock = 64
	miTile  = 128
)

// LineWeights are the sums over the last queries (64 at most) of a head's attention weights, by key
// and by distance of the key from the query.
func (p *Prefill) LineWeights(head int) (vertical, slash []float64) {
	total := p.Prefix + p.QTokens
	vertical, slash = make([]float64, total), make([]float64, total)
	for i := max(0, p.QTokens-miBlock); i < p.QTokens; i++ {
		query := p.Q[(i*p.HeadsQ+head)*p.Dim:][:p.Dim]
		weights, top, sum := make([]float64, p.Prefix+i+1), math.Inf(-1), 0.0
		for key := range weights {
			weights[key] = p.Scale * dot(query, p.K[(key*p.HeadsKV+head/p.Group())*p.Dim:])
			top = max(top, weights[key])
		}
		for key, w := range weights {
			weights[key] = math.Exp(w - top)
			sum += weights[key]
		}
		for key, w := range weights {
			vertical[key] += w / sum
			slash[p.Prefix+i-key] += w / sum
		}
	}
	return vertical, slash
}

// RowLists is the attention of one row of 64 queries: starts of blocks and single keys, both
// ascending.
type RowLists struct{ Blocks, Columns []int32 }

// MergeLines is the loop body of MInference's Algorithm 4, for the row whose last query is at
// position end - 1: a two-way merge of points and ranges. Lines are ascending. Vertical lines past
// the last range are columns as well.
func MergeLines(vertical, slash []int32, end int) RowLists {
	var r RowLists
	v := 0
	// columns visits the vertical lines below `to`; lines in the range that starts at `from` are
	// covered.
	columns := func(from, to int) {
		for ; v < len(vertical) && int(vertical[v]) < to; v++ {
			if int(vertical[v]) < from {
				r.Columns = append(r.Columns, vertical[v])
			}
		}
	}
	record := func(from, to int) {
		columns(from, to)
		for ; from < to; from += miBlock {
			r.Blocks = append(r.Blocks, int32(from))
		}
	}
	from, to := 0, 0 // the range so far; none yet
	for _, s := range slices.Backward(slash) {
		if int(s) >= end {
			continue // the line does not cross this row
		}
		stop := max(end-int(s), miBlock)
		switch {
		case to == 0:
			from, to = stop-miBlock, stop
		case stop > to+miBlock:
			record(from, to)
			from, to = stop-miBlock, stop
		case stop > to:
			to += miBlock
		}
	}
	record(from, to)
	columns(end, end)
	return r
}

// TileLists joins the lists of a tile's halves in the layout of MIAttendArgs.
func TileLists(first, second RowLists) (blocks, columns []int32, counts [4]int32) {
	in := func(list []int32, x int32) bool {
		_, found := slices.BinarySearch(list, x)
		return found
	}
	part := func(list []int32, keep func(int32) bool) int32 {
		n := len(blocks)
		for _, b := range list {
			if keep(b) {
				blocks = append(blocks, b)
			}
		}
		return int32(len(blocks) - n)
	}
	counts[0] = part(first.Blocks, func(b int32) bool { return in(second.Blocks, b) })
	counts[1] = part(first.Blocks, func(b int32) bool { return !in(second.Blocks, b) })
	counts[2] = part(second.Blocks, func(b int32) bool { return !in(first.Blocks, b) })
	all := slices.Concat(first.Columns, second.Columns)
	slices.Sort(all)
	for _, key := range slices.Compact(all) {
		entry := uint32(key)
		if !in(first.Columns, key) {
			entry |= 1 << 30
		}
		if !in(second.Columns, key) {
			entry |= 1 << 31
		}
		columns = append(columns, int32(entry))
	}
	counts[3] = int32(len(columns))
	return blocks, columns, counts
}

// LinesOfTile is TileLists of MergeLines of a tile of a chunk's queries. A half without queries has
// no blocks.
func LinesOfTile(vertical, slash []int32, tile, queries, prefix int) ([]int32, []int32, [4]int32) {
	end := prefix + tile*miTile + miBlock
	second := slash
	if tile*miTile+miBlock >= queries {
		second = nil
	}
	return TileLists(MergeLines(vertical, slash, end), MergeLines(vertical, second, end+miBlock))
}

// Pool averages each 64 tokens of [tokens][dim] values; the last may be fewer.
func Pool(x []float64, dim int) []float64 {
	var out []float64
	for block := range slices.Chunk(x, miBlock*dim) {
		mean := make([]float64, dim)
		for i, v := range block {
			mean[i%dim] += v / float64(len(block)/dim)
		}
		out = append(out, mean...)
	}
	return out
}

// TopBlocks returns the k blocks with the best scores for a row of 64 queries, as starts of blocks,
// ascending. The row attends to no block past its last query.
func TopBlocks(scores []float64, row, queries, prefix, k int) []int32 {
	seen := (prefix+min((row+1)*miBlock, queries)-1)/miBlock + 1
	list := TopK(scores[:seen], k, 0, 0)
	slices.Sort(list)
	for i := range list {
		list[i] *= miBlock
	}
	return list
}
