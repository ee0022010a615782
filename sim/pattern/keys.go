package pattern

import "math"

// Slash lines are diagonals. A row of blocks intersects each diagonal in 64 columns, and
// overlapping columns are computed once. A line adds as few as one column if its neighbours are
// lines too, and 64 if it is isolated. The positions of lines depend on the prompt and are not
// published, so the number of columns is an assumption:
//
//	columns(r) = slashColumns k_s max(1, r / scatterFrom)
//
// for the row at position r. Both constants are fitted to MInference's end-to-end seconds at
// 50K to 1M tokens (docs/studies/minference.md), and are within the bounds of Fig. 12: 1.9
// columns correspond to lines in runs of 70 diagonals; rows of more than 200K tokens scatter
// them.
const (
	slashColumns = 1.9
	scatterFrom  = 200_000.0
)

// line is a number of keys per row: base up to position from, then increasing by slope per
// position.
type line struct{ base, from, slope float64 }

// keys returns the number of keys that the pattern keeps of a sufficiently long row.
func (h Head) keys() line {
	a, b := float64(h.A), float64(h.B)
	switch h.Kind {
	case Dense:
		return line{base: math.Inf(1)}
	case BlockSparse:
		return line{base: BlockTokens * a}
	case VerticalSlash:
		columns := slashColumns * b
		return line{base: a + columns, from: scatterFrom, slope: columns / scatterFrom}
	}
	return line{base: a + b}
}

func (l line) at(r float64) float64 {
	if l.slope == 0 {
		return l.base
	}
	return l.base + l.slope*math.Max(0, r-l.from)
}

// crossing is the row length beyond which rows keep fewer keys than they have.
func (l line) crossing() float64 {
	switch {
	case l.slope == 0 || l.base <= l.from:
		return l.base
	case l.slope >= 1:
		return math.Inf(1)
	}
	return (l.base - l.slope*l.from) / (1 - l.slope)
}

// sum is the integral of the line from 0 to r.
func (l line) sum(r float64) float64 {
	past := math.Max(0, r-l.from)
	return l.base*r + l.slope*past*past/2
}

// Kept returns the number of keys that the row at position row attends to, at most row.
func (h Head) Kept(row float64) float64 { return math.Min(row, h.keys().at(row)) }

// Pairs returns the number of (query, key) pairs that the head computes for query tokens after
// prefix earlier tokens: Kept, summed over the rows. For dense:
// query prefix + query^2 / 2.
func (h Head) Pairs(query, prefix int) float64 {
	from, to := float64(prefix), float64(prefix)+float64(query)
	l := h.keys()
	whole := math.Min(math.Max(l.crossing(), from), to) // rows up to here keep all keys
	pairs := (whole*whole - from*from) / 2
	if whole < to {
		pairs += l.sum(to) - l.sum(whole)
	}
	return pairs
}

// Density is the number of pairs of a whole prompt relative to dense causal attention.
func (h Head) Density(tokens int) float64 {
	dense, _ := Published(Dense)
	return h.Pairs(tokens, 0) / dense.Pairs(tokens, 0)
}

// IndexBytes is the bytes that one head moves to find the keys of a chunk, with d values per
// token in fp16:
//
//	vertical-slash  K of prefix and chunk, and the scores of the last 64 queries in fp32
//	block-sparse    Q of the chunk and K of all, and the causal scores of blocks in fp32
//
// The index is built once per chunk.
func (h Head) IndexBytes(query, prefix, d int) float64 {
	q, all := float64(query), float64(prefix)+float64(query)
	k := 2 * float64(d) * all
	switch h.Kind {
	case VerticalSlash:
		return k + 4*math.Min(q, BlockTokens)*all
	case BlockSparse:
		return k + 2*float64(d)*q + 4*(q*float64(prefix)+q*q/2)/(BlockTokens*BlockTokens)
	}
	return 0
}

// Gathered returns the number of pairs in Pairs whose keys are single columns. For
// vertical-slash these are the vertical lines beyond the keys that slash lines keep.
func (h Head) Gathered(query, prefix int) float64 {
	if h.Kind != VerticalSlash {
		return 0
	}
	return h.Pairs(query, prefix) - Head{VerticalSlash, 0, h.B}.Pairs(query, prefix)
}

// Lists returns the vertical-slash head whose rows have the given numbers of blocks (from slash
// lines) and columns.
func Lists(blocks, columns int) Head {
	return Head{VerticalSlash, columns, int(math.Round(BlockTokens * float64(blocks) / slashColumns))}
}

// Scanned is the bytes that one head reads to estimate the important keys of a chunk. For
// vertical-slash it reads K of all tokens before its last 64 queries. For block-sparse it reads
// Q of the chunk and a share of K of all tokens, because K is pooled to blocks once for the
// query heads of a KV head.
func (h Head) Scanned(query, prefix, d int, share float64) float64 {
	all := float64(prefix) + float64(query)
	switch h.Kind {
	case VerticalSlash:
		return 2 * float64(d) * all
	case BlockSparse:
		return 2 * float64(d) * (float64(query) + share*all)
	}
	return 0
}

// passed is the mean number of slash lines that a step of the merge passes (cuda/mi_lines.cu).
// A step passes 64, 16 or 4 lines if they end in the current block, else one. In runs of 70
// diagonals, as in prompts, the mean is 5.5 for few or many lines, as long as half of the
// diagonals are not lines (TestSlashLinesPassedAtATime).
const passed = 5.5

// Listed is the bytes of the lists from which one head's rows choose, 4 bytes per entry: a
// tile's vertical lines, the steps through its slash lines, or the scores of the blocks that a
// row may attend to.
func (h Head) Listed(query, prefix int) float64 {
	q := float64(query)
	switch h.Kind {
	case VerticalSlash:
		return 4 * math.Ceil(q/TileTokens) * (float64(h.A) + float64(h.B)/passed)
	case BlockSparse:
		return 4 * (q*float64(prefix) + q*q/2) / (BlockTokens * BlockTokens)
	}
	return 0
}

// rankedAtOnce is the number of tiles that a GPU ranks concurrently. Eight CTAs of 256 threads
// (cuda/topk.cuh), one tile each, fill an SM; Hopper GPUs have 132 SMs.
const rankedAtOnce = 8 * 132

// Steps is the number of serial steps of an index of the given heads. For vertical-slash it is
// the number of lines that a row walks through; all rows run concurrently. For block-sparse it
// is the number of tiles whose blocks are ranked because they see more blocks than they keep.
// Fewer tiles than a GPU ranks concurrently take the same time.
func (h Head) Steps(query, prefix int, heads float64) float64 {
	switch h.Kind {
	case VerticalSlash:
		return float64(h.B)
	case BlockSparse:
		ranked := prefix + query - max(prefix, BlockTokens*h.A)
		if ranked <= 0 {
			return 0
		}
		return math.Max(rankedAtOnce, heads*math.Ceil(float64(ranked)/TileTokens))
	}
	return 0
}
