package pattern

import "math"

// Slash lines are diagonals. A row of blocks meets each in 64 columns, and what overlaps is
// computed once: a line adds as few as one column where its neighbours are lines too, and 64
// where it stands apart. Where they are depends on the prompt and is published for none, so this
// is an assumption:
//
//	columns(r) = slashColumns k_s max(1, r / scatterFrom)
//
// of the row at position r. Both figures are fitted to MInference's end-to-end seconds at 50K to
// 1M tokens (docs/studies/minference.md), and Fig. 12's bounds hold them: 1.9 columns are lines
// in runs of 70 diagonals; rows of more than 200K tokens scatter them.
const (
	slashColumns = 1.9
	scatterFrom  = 200_000.0
)

// line is a number of keys a row: base to position from, then rising by slope a position.
type line struct{ base, from, slope float64 }

// keys returns what the pattern keeps of a row that is long enough.
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

// crossing is the length from which rows keep fewer keys than they have.
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

// Kept returns how many keys the row at a position attends to, of the as many that it has.
func (h Head) Kept(row float64) float64 { return math.Min(row, h.keys().at(row)) }

// Pairs returns how many pairs of a query and a key the head computes for query tokens after
// prefix earlier ones: Kept, summed over the rows. Dense, it is query prefix + query^2 / 2.
func (h Head) Pairs(query, prefix int) float64 {
	from, to := float64(prefix), float64(prefix)+float64(query)
	l := h.keys()
	whole := math.Min(math.Max(l.crossing(), from), to) // rows to here keep all
	pairs := (whole*whole - from*from) / 2
	if whole < to {
		pairs += l.sum(to) - l.sum(whole)
	}
	return pairs
}

// Density is the share of the pairs of dense causal attention that a whole prompt computes.
func (h Head) Density(tokens int) float64 {
	dense, _ := Published(Dense)
	return h.Pairs(tokens, 0) / dense.Pairs(tokens, 0)
}

// IndexBytes is what one head moves to find the keys of a chunk, d values a token, fp16:
//
//	vertical-slash  K of prefix and chunk, and the scores of the last 64 queries in fp32
//	block-sparse    Q of the chunk and K of all, and the causal scores of blocks in fp32
//
// The index is built once for each chunk.
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

// Gathered returns the pairs of Pairs whose keys are single columns: of vertical-slash, the
// vertical lines beyond what slash lines keep of a row.
func (h Head) Gathered(query, prefix int) float64 {
	if h.Kind != VerticalSlash {
		return 0
	}
	return h.Pairs(query, prefix) - Head{VerticalSlash, 0, h.B}.Pairs(query, prefix)
}

// Lists returns the head whose rows have so many blocks, by slash lines, and columns.
func Lists(blocks, columns int) Head {
	return Head{VerticalSlash, columns, int(math.Round(BlockTokens * float64(blocks) / slashColumns))}
}

// Scanned is the bytes that one head reads to estimate which keys of a chunk count: K of all
// before its last 64 queries, or Q of the chunk and a share of K of all, which are pooled to
// blocks once for the query heads of a KV head.
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

// passed are the slash lines that a step of the merge passes (cuda/mi_lines.cu): 64, 16 or 4 where
// they end in the block that it is at, else one. In runs of 70 diagonals, as prompts have them,
// these are 5.5 in the mean, of few lines or many, as long as half of the diagonals are none
// (TestSlashLinesPassedAtATime).
const passed = 5.5

// Listed is the bytes of what one head's rows choose from, 4 each: a tile's vertical lines, the
// steps through its slash lines, or the scores of the blocks that a row may see.
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

// rankedAtOnce are the tiles that a card ranks at once: eight CTAs of 256 threads (cuda/topk.cuh),
// of a tile each, fill an SM, of which Hopper's cards have 132.
const rankedAtOnce = 8 * 132

// Steps is what an index of so many heads does one after another: of vertical-slash the lines
// that a row walks through, all rows at once; of block-sparse the tiles whose blocks are ranked,
// as they see more than they keep; fewer than a card ranks at once take as long.
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
