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

// TileTokens is the number of queries of a head that a thread block of this project's kernels
// computes.
const TileTokens = 128

// Tiles is the number of tiles of one head's chunk. A tile of vertical-slash counts once per line,
// because its index merges the lines into the tile's lists.
func (h Head) Tiles(query, prefix int) float64 {
	tiles := math.Ceil(float64(query) / TileTokens)
	if h.Kind == VerticalSlash {
		all := query + prefix
		return tiles * float64(min(h.A, all)+min(h.B, all))
	}
	return tiles
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
