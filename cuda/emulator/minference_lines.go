package emulator

import (
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

func checkMIEstimateShape(c *checks, a *cuda.MIEstimateArgs) {
	p := &a.Prefill
	c.need(p.QTokens > 0 && p.Prefix >= 0 && int64(p.QTokens)+int64(p.Prefix) <= miMost,
		"tokens, and less than 2^30")
	c.heads(p.HeadsQ, p.HeadsKV, p.HeadDim)
	c.need(p.HeadDim == 128 && p.Table == 0, "128 values a head and tensors")
	for _, stride := range []int64{p.QTokenStride, p.QHeadStride, p.KTokenStride, p.KHeadStride} {
		c.need(stride%8 == 0, "strides that are multiples of 8")
	}
}

func checkMIEstimate(c *checks, a *cuda.MIEstimateArgs) {
	checkMIEstimateShape(c, a)
	c.given("q, k, vertical, slash and a workspace", a.Prefill.Q, a.Prefill.K, a.Vertical, a.Slash,
		a.Workspace)
	c.need(a.Stride >= int64(a.Prefill.Prefix)+int64(a.Prefill.QTokens), "a value for every key")
}

// miEstimateBytes is the GPU's workspace: sums for each row of each run of tiles, and over all
// runs.
func miEstimateBytes(a *cuda.MIEstimateArgs) int64 {
	tiles := (int64(a.Prefill.Prefix) + int64(a.Prefill.QTokens) + miBlock - 1) / miBlock
	return int64(a.Prefill.HeadsQ) * (min(512, (tiles+7)/8) + 1) * miBlock * 8
}

func miEstimate(m *access, a *cuda.MIEstimateArgs) {
	p := &a.Prefill
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

func checkMITopKShape(c *checks, a *cuda.MITopKArgs) {
	c.need(a.Rows > 0 && a.N > 0 && a.K > 0 && a.K <= a.N && a.First >= 0,
		"rows of 1 to n chosen of n scores")
}

func checkMITopK(c *checks, a *cuda.MITopKArgs) {
	checkMITopKShape(c, a)
	c.given("scores, list and a workspace", a.Scores, a.List, a.Workspace)
	c.need(a.ScoreStride >= int64(a.N) && a.ListStride >= int64(a.K), "strides of a row at least")
}

// miTopKBytes is the GPU's workspace: counts of digits, and of each chunk.
func miTopKBytes(a *cuda.MITopKArgs) int64 {
	return int64(a.Rows) * (3*2048 + 2*((int64(a.N)+4095)/4096)) * 4
}

func miTopK(m *access, a *cuda.MITopKArgs) {
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

func checkMILines(c *checks, a *cuda.MILinesArgs) {
	c.need(a.HeadsQ > 0 && a.QTokens > 0 && a.Prefix >= 0 &&
		int64(a.QTokens)+int64(a.Prefix) <= miMost, "heads and tokens, less than 2^30")
	c.need(a.SlashCount > 0 && a.VerticalCount >= 0, "a slash line")
	c.need(a.VerticalStride >= int64(a.VerticalCount) && a.SlashStride >= int64(a.SlashCount),
		"strides of a row at least")
	c.given("lines, blocks, columns and counts", a.Vertical, a.Slash, a.Blocks, a.Columns, a.Counts)
	c.need(a.BlockStride >= 2*min(a.SlashCount, (a.Prefix+a.QTokens)/miBlock+2) &&
		a.ColumnStride >= a.VerticalCount, "lists that hold a block a line, and all columns")
}

func miLines(m *access, a *cuda.MILinesArgs) {
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
