package emulator

import (
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

func checkMIEstimate(m *access, a *cuda.MIEstimateArgs) {
	checkPrefill(m, &a.Prefill)
	m.need(a.Prefill.QTokens > 0, "tokens")
	m.need(a.Prefill.HeadDim == 128 && a.Prefill.Table == 0, "128 values a head and tensors")
}

// miEstimateBytes is the GPU's workspace: sums for each row of each run of tiles, and over all
// runs.
func miEstimateBytes(a *cuda.MIEstimateArgs) int64 {
	tiles := (int64(a.Prefill.Prefix) + int64(a.Prefill.QTokens) + miBlock - 1) / miBlock
	return int64(a.Prefill.HeadsQ) * (min(512, (tiles+7)/8) + 1) * miBlock * 8
}

func miEstimate(m *access, a *cuda.MIEstimateArgs) {
	checkMIEstimate(m, a)
	r := prefillOf(m, &a.Prefill, false)
	total := r.Prefix + r.QTokens
	m.need(a.Stride >= int64(total), "a value for every key")
	for head := range r.HeadsQ {
		vertical, slash := r.LineWeights(head)
		for i := range total {
			*at[float32](m, "Vertical", a.Vertical, head*int(a.Stride)+i) = float32(vertical[i])
			*at[float32](m, "Slash", a.Slash, head*int(a.Stride)+i) = float32(slash[i])
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
