package emulator

import (
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

func checkMIEstimate(m *access, a *cuda.MIEstimateArgs) {
	p := &a.Prefill
	m.heads(p.HeadsQ, p.HeadsKV, p.HeadDim)
	m.need(p.QTokens > 0 && p.Prefix >= 0, "tokens")
	m.need(p.HeadDim == 128 && p.Table == 0, "128 values a head and tensors")
	for _, stride := range []int64{p.QTokenStride, p.QHeadStride, p.KTokenStride, p.KHeadStride} {
		m.need(stride%8 == 0, "strides that are multiples of 8")
	}
}

// miEstimateBytes is the GPU's workspace: sums for each row of each run of tiles, and over all
// runs.
func miEstimateBytes(a *cuda.MIEstimateArgs) int64 {
	tiles := (int64(a.Prefill.Prefix) + int64(a.Prefill.QTokens) + miBlock - 1) / miBlock
	return int64(a.Prefill.HeadsQ) * (min(512, (tiles+7)/8) + 1) * miBlock * 8
}

func miEstimate(m *access, a *cuda.MIEstimateArgs) {
	checkMIEstimate(m, a)
	p := &a.Prefill
	m.need(a.Stride >= int64(p.Prefix)+int64(p.QTokens), "a value for every key")
	total, dim := int(p.Prefix+p.QTokens), int(p.HeadDim)
	for head := range int(p.HeadsQ) {
		one := reference.Prefill{Shape: reference.Shape{Batch: 1, HeadsQ: 1, HeadsKV: 1, Dim: dim},
			QTokens: int(p.QTokens), Prefix: int(p.Prefix), Scale: float64(p.Scale)}
		for i := range int(p.QTokens) {
			one.Q = append(one.Q, m.tensor("Q", p.Q, i*int(p.QTokenStride)+head*int(p.QHeadStride),
				dim)...)
		}
		for t := range total {
			kv := head / int(p.HeadsQ/p.HeadsKV)
			one.K = append(one.K, m.tensor("K", p.K, t*int(p.KTokenStride)+kv*int(p.KHeadStride),
				dim)...)
		}
		vertical, slash := one.LineWeights(0)
		for i, to := range []cuda.Ptr{a.Vertical, a.Slash} {
			out := view[float32](m, []string{"Vertical", "Slash"}[i], to, head*int(a.Stride), total)
			for j, w := range [][]float64{vertical, slash}[i] {
				out[j] = float32(w)
			}
		}
	}
}

func checkMITopK(m *access, a *cuda.MITopKArgs) {
	m.need(a.Rows > 0 && a.N > 0 && a.K > 0 && a.K <= a.N && a.First >= 0,
		"rows of 1 to n chosen of n scores")
}

// miTopKBytes is the GPU's workspace: counts of digits, and of each chunk.
func miTopKBytes(a *cuda.MITopKArgs) int64 {
	return int64(a.Rows) * (3*2048 + 2*((int64(a.N)+4095)/4096)) * 4
}

func miTopK(m *access, a *cuda.MITopKArgs) {
	checkMITopK(m, a)
	for row := range int(a.Rows) {
		scores := view[float32](m, "Scores", a.Scores, row*int(a.ScoreStride), int(a.N))
		wide := make([]float64, len(scores))
		for i, s := range scores {
			wide[i] = float64(s)
		}
		list := reference.TopK(wide, int(a.K), int(a.First), 0)
		slices.Sort(list)
		copy(view[int32](m, "List", a.List, row*int(a.ListStride), int(a.K)), list)
	}
}

func miLines(m *access, a *cuda.MILinesArgs) {
	m.need(a.SlashCount > 0 && a.BlockStride >= 2*min(a.SlashCount, (a.Prefix+a.QTokens)/miBlock+2) &&
		a.ColumnStride >= a.VerticalCount, "a slash line, lists of a block a line and of all columns")
	for head := range int(a.HeadsQ) {
		vertical := view[int32](m, "Vertical", a.Vertical, head*int(a.VerticalStride),
			int(a.VerticalCount))
		slash := view[int32](m, "Slash", a.Slash, head*int(a.SlashStride), int(a.SlashCount))
		for i, list := range [][]int32{vertical, slash} {
			if !slices.IsSorted(list) {
				m.fault([]string{"Vertical", "Slash"}[i], []cuda.Ptr{a.Vertical, a.Slash}[i], 4,
					"the lines of head %d do not ascend", head)
			}
		}
		for tile := range miTiles(a.QTokens) {
			blocks, columns, counts := reference.LinesOfTile(vertical, slash, tile, int(a.QTokens),
				int(a.Prefix))
			row := head*miTiles(a.QTokens) + tile
			copy(view[int32](m, "Blocks", a.Blocks, row*int(a.BlockStride), len(blocks)), blocks)
			copy(view[int32](m, "Columns", a.Columns, row*int(a.ColumnStride), len(columns)), columns)
			copy(view[int32](m, "Counts", a.Counts, row*4, 4), counts[:])
		}
	}
}
