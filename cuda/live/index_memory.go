package live

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// MInference's kernels: tiles of 128 queries, rows of 64, blocks of 64 keys.
const (
	indexTile  = 128
	indexBlock = pattern.BlockTokens
)

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// indexShape is the size of a prefill: queries is its number of queries, the last of its tokens.
type indexShape struct{ queries, tokens int }

func (s indexShape) tiles() int  { return ceilDiv(s.queries, indexTile) }
func (s indexShape) rows() int   { return ceilDiv(s.queries, indexBlock) }
func (s indexShape) blocks() int { return ceilDiv(s.tokens, indexBlock) }

// strides returns the blocks and columns that a tile's list of a head holds.
func (s indexShape) strides(h pattern.Head) (blocks, columns int) {
	if h.Kind == pattern.BlockSparse {
		return 2 * min(h.A, s.blocks()), 0
	}
	return 2 * min(h.B, s.tokens, s.tokens/indexBlock+2), min(h.A, s.tokens)
}

// listStrides returns strides that hold the lists of all heads in runs.
func (s indexShape) listStrides(runs []headRun) (blocks, columns int) {
	for i := range runs {
		b, c := s.strides(runs[i].Head)
		blocks, columns = max(blocks, b), max(columns, c)
	}
	return blocks, columns
}

// listBytes is the maximum memory of a launch's lists, unless one head needs more. Lists of many
// heads of a long prompt are built and used in parts.
const listBytes = 1 << 30

// headBytes returns the bytes of a head's lists.
func (s indexShape) headBytes(blocks, columns int) int64 {
	return 4 * int64(s.tiles()) * int64(blocks+columns)
}

// mostHeads returns the number of heads whose lists are built together.
func (s indexShape) mostHeads(blocks, columns int) int {
	return int(max(1, listBytes/s.headBytes(blocks, columns)))
}

// scoreWords returns the words of the block scores of all heads and rows, limited to the memory.
func (s indexShape) scoreWords(heads int) int {
	stride := ceilDiv(s.blocks(), indexBlock) * indexBlock
	return min(heads*s.rows()*stride, max(indexBlock*stride, 32<<20))
}

// indexMemory is the memory in which indices are built, for one layer of one prefill.
type indexMemory struct {
	k, v               mem.Buffer // of a prompt with a prefix: fp16 [KVHeads][tokens][D]
	vertical, slash    mem.Buffer // weights of lines, fp32 [heads][tokens]
	verticals, slashes mem.Buffer // lines chosen, int32
	estimate, topK     mem.Buffer // workspaces
	pooledQ, pooledK   mem.Buffer // fp16 [heads][blocks][D]
	scores             mem.Buffer // of blocks, fp32
	lists, counts      mem.Buffer // blocks, then columns; counts of each tile
}

// needs lists the memory of a prefill. With a prefix it includes gathered keys and values.
func (p *patterns) needs(m cuda.Machine, md *weights.Config, s indexShape, prefix bool) ([]need,
	error) {
	n := indexNeeds{patterns: p, indexShape: s, md: md, dim: int64(md.HeadDim),
		heads: int64(md.QHeads), kvHeads: int64(md.KVHeads)}
	if prefix {
		bytes := 2 * n.kvHeads * int64(s.tokens) * n.dim
		n.add(&p.memory.k, bytes, "keys of a prompt")
		n.add(&p.memory.v, bytes, "values of a prompt")
	}
	if p.slashes > 0 {
		if err := n.verticalSlash(m); err != nil {
			return nil, err
		}
	}
	if p.best > 0 {
		n.blockSparse()
	}
	if len(n.listed) > 0 {
		n.lists()
	}
	return n.all, nil
}

// indexNeeds collects the memory needs of one prefill.
type indexNeeds struct {
	*patterns
	indexShape
	md                  *weights.Config
	heads, kvHeads, dim int64
	listed              []headRun // of the largest sizes
	all                 []need
}

func (n *indexNeeds) add(b *mem.Buffer, bytes int64, what string) {
	n.all = append(n.all, need{b, bytes, what})
}

func (n *indexNeeds) verticalSlash(m cuda.Machine) error {
	b, tokens := &n.memory, int64(n.tokens)
	n.listed = append(n.listed, headRun{Head: pattern.Head{Kind: pattern.VerticalSlash,
		A: n.verticals, B: n.slashes}})
	workspace, err := m.Workspace(&cuda.MIEstimateArgs{Prefill: cuda.PrefillArgs{
		QTokens: int32(n.queries), Prefix: int32(n.tokens - n.queries), HeadsQ: int32(n.heads),
		HeadsKV: int32(n.kvHeads), HeadDim: int32(n.dim)}})
	if err != nil {
		return err
	}
	counts, err := m.Workspace(&cuda.MITopKArgs{Rows: int32(n.heads), N: int32(tokens), K: 1})
	n.add(&b.vertical, 4*n.heads*tokens, "weights of columns")
	n.add(&b.slash, 4*n.heads*tokens, "weights of diagonals")
	n.add(&b.verticals, 4*n.heads*min(int64(n.verticals), tokens), "chosen columns")
	n.add(&b.slashes, 4*n.heads*min(int64(n.slashes), tokens), "chosen diagonals")
	n.add(&b.estimate, workspace, "workspace of line weights")
	n.add(&b.topK, counts, "workspace of the choice of lines")
	return err
}

func (n *indexNeeds) blockSparse() {
	b := &n.memory
	n.listed = append(n.listed, headRun{Head: pattern.Head{Kind: pattern.BlockSparse, A: n.best}})
	n.add(&b.pooledQ, 2*n.heads*int64(n.rows())*n.dim, "pooled queries")
	n.add(&b.pooledK, 2*n.kvHeads*int64(n.blocks())*n.dim, "pooled keys")
	n.add(&b.scores, 4*int64(n.scoreWords(n.md.QHeads)), "scores of blocks")
}

// lists adds the lists of all heads, limited to listBytes.
func (n *indexNeeds) lists() {
	head := n.headBytes(n.listStrides(n.listed))
	n.add(&n.memory.lists, min(n.heads*head, max(head, listBytes)), "lists of sparse prefill")
	n.add(&n.memory.counts, 16*n.heads*int64(n.tiles()), "counts of sparse prefill")
}

// longestIndex returns the largest prefill that the device prepares for, and whether it has a
// prefix.
func (c *Config) longestIndex() (s indexShape, prefix bool) {
	if len(c.Patterns) == 0 {
		return s, false
	}
	s = indexShape{c.Longest, c.Longest}
	switch c.Spec.Prefill.Split {
	case "chunked":
		s.queries = min(c.Longest, c.Spec.MaxTokens)
		return s, s.queries < c.Longest
	case "layer-chunked":
		return s, true
	}
	return s, false
}

// lineTokens returns the longest context for which lines may be drawn.
func (c *Config) lineTokens() int {
	return max(drawnTokens, c.Longest, c.Weights.Config().MaxContext)
}

// sizeIndex grows the memory of indices for a prefill.
func (d *paged) sizeIndex(s indexShape, prefix bool) {
	if len(d.patterns.layers) == 0 {
		return
	}
	needs, err := d.patterns.needs(d.m, &d.model.Config, s, prefix)
	d.queue.Fail(err)
	for _, g := range needs {
		d.grow(g.b, g.bytes, g.what)
	}
}
