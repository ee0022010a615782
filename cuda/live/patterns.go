package live

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// patterns is sparse prefill: what each query head attends to while a prompt is prefilled, and the
// memory in which its indices are built. Without layers prefill is dense.
type patterns struct {
	layers                   [][]section
	verticals, slashes, best int // largest sizes
	memory                   indexMemory
}

// headRun is query heads [from, to) of one pattern.
type headRun struct {
	from, to int
	pattern.Head
}

// section is neighbouring heads that attend by lists, or a run of heads that need none.
type section struct {
	from, to int
	runs     []headRun
}

func (s *section) listed() bool { return s.runs[0].Kind.Indexed() }

// newPatterns sorts the heads of each layer into sections.
func newPatterns(layers [][]pattern.Head) patterns {
	p := patterns{layers: make([][]section, len(layers))}
	for layer, heads := range layers {
		for i, h := range heads {
			p.add(layer, headRun{i, i + 1, h})
		}
	}
	return p
}

// add appends a head to a layer.
func (p *patterns) add(layer int, h headRun) {
	switch h.Kind {
	case pattern.VerticalSlash:
		p.verticals, p.slashes = max(p.verticals, h.A), max(p.slashes, h.B)
	case pattern.BlockSparse:
		p.best = max(p.best, h.A)
	}
	all := p.layers[layer]
	if n := len(all); n > 0 {
		s := &all[n-1]
		last := &s.runs[len(s.runs)-1]
		switch {
		case last.Head == h.Head:
			last.to, s.to = h.to, h.to
			return
		case s.listed() && h.Kind.Indexed():
			s.runs, s.to = append(s.runs, h), h.to
			return
		}
	}
	p.layers[layer] = append(all, section{h.from, h.to, []headRun{h}})
}

// launches divides query heads [from, to) so that each part has either whole groups of the query
// heads that share a KV head, or heads of one group: what one launch can have. A part has at most
// the given heads.
func launches(from, to, group, most int) (parts [][2]int) {
	for from < to {
		n := min(to-from, most)
		if from%group == 0 && n >= group {
			n = n / group * group
		} else {
			n = min(n, group-from%group)
		}
		parts = append(parts, [2]int{from, from + n})
		from += n
	}
	return parts
}

// headsOf is attention of a part of the query heads.
func headsOf(a cuda.PrefillArgs, part [2]int) cuda.PrefillArgs {
	group := int(a.HeadsQ / a.HeadsKV)
	move := func(p *cuda.Ptr, heads int, stride int64) { *p += cuda.Ptr(2 * int64(heads) * stride) }
	move(&a.Q, part[0], a.QHeadStride)
	move(&a.Out, part[0], a.OutHeadStride)
	move(&a.K, part[0]/group, a.KHeadStride)
	move(&a.V, part[0]/group, a.VHeadStride)
	a.HeadsQ = int32(part[1] - part[0])
	a.HeadsKV = max(1, a.HeadsQ/int32(group))
	return a
}

// MInference's kernels: tiles of 128 queries, rows of 64, blocks of 64 keys.
const (
	indexTile  = 128
	indexBlock = pattern.BlockTokens
)

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// indexShape is the size of a prefill: so many queries, the last of so many tokens.
type indexShape struct{ queries, tokens int }

func (s indexShape) tiles() int  { return ceilDiv(s.queries, indexTile) }
func (s indexShape) rows() int   { return ceilDiv(s.queries, indexBlock) }
func (s indexShape) blocks() int { return ceilDiv(s.tokens, indexBlock) }

// strides are the blocks and columns that a tile's list of a head holds.
func (s indexShape) strides(h pattern.Head) (blocks, columns int) {
	if h.Kind == pattern.BlockSparse {
		return 2 * min(h.A, s.blocks()), 0
	}
	return 2 * min(h.B, s.tokens, s.tokens/indexBlock+2), min(h.A, s.tokens)
}

// listStrides are strides that hold the lists of all of some heads.
func (s indexShape) listStrides(runs []headRun) (blocks, columns int) {
	for i := range runs {
		b, c := s.strides(runs[i].Head)
		blocks, columns = max(blocks, b), max(columns, c)
	}
	return blocks, columns
}

// listBytes is the memory of a launch's lists, unless those of one head need more: the lists of
// many heads of a long prompt are built and used part by part.
const listBytes = 1 << 30

// mostHeads is how many heads' lists are built at once.
func (s indexShape) mostHeads(blocks, columns int) int {
	return max(1, listBytes/(4*s.tiles()*(blocks+columns)))
}

// scoreWords are those of the scores of blocks: of all heads and rows, or of as many as fit.
func (s indexShape) scoreWords(heads int) int {
	stride := ceilDiv(s.blocks(), indexBlock) * indexBlock
	return min(heads*s.rows()*stride, max(indexBlock*stride, 32<<20))
}

// indexMemory is what indices are built in. It holds one layer's of one prefill.
type indexMemory struct {
	k, v               mem.Buffer // of a prompt with a prefix: fp16 [KVHeads][tokens][D]
	vertical, slash    mem.Buffer // weights of lines, fp32 [heads][tokens]
	verticals, slashes mem.Buffer // lines chosen, int32
	estimate, topK     mem.Buffer // workspaces
	pooledQ, pooledK   mem.Buffer // fp16 [heads][blocks][D]
	scores             mem.Buffer // of blocks, fp32
	lists, counts      mem.Buffer // blocks, then columns; counts of each tile
}

// sizer is the part of a machine that sizes workspaces.
type sizer interface {
	Workspace(cuda.Operation) (int64, error)
}

// needs lists the memory of a prefill. With a prefix it is of whole blocks.
func (p *patterns) needs(m sizer, md *weights.Config, s indexShape, prefix bool) ([]need, error) {
	b, dim := &p.memory, int64(md.HeadDim)
	heads, tokens := int64(md.HeadsQ), int64(s.tokens)
	var needs []need
	add := func(b *mem.Buffer, bytes int64, what string) { needs = append(needs, need{b, bytes, what}) }
	if prefix {
		add(&b.k, 2*int64(md.HeadsKV)*tokens*dim, "keys of a prompt")
		add(&b.v, 2*int64(md.HeadsKV)*tokens*dim, "values of a prompt")
	}
	if p.slashes == 0 && p.best == 0 {
		return needs, nil
	}
	all := []headRun{}
	if p.slashes > 0 {
		all = append(all, headRun{Head: pattern.Head{Kind: pattern.VerticalSlash, A: p.verticals,
			B: p.slashes}})
		estimate := &cuda.MIEstimateArgs{Prefill: cuda.PrefillArgs{QTokens: int32(s.queries),
			Prefix: int32(s.tokens - s.queries), HeadsQ: int32(heads), HeadsKV: int32(md.HeadsKV),
			HeadDim: int32(dim)}}
		top := &cuda.MITopKArgs{Rows: int32(heads), N: int32(tokens), K: 1}
		workspace, err := m.Workspace(estimate)
		if err != nil {
			return nil, err
		}
		counts, err := m.Workspace(top)
		if err != nil {
			return nil, err
		}
		add(&b.vertical, 4*heads*tokens, "weights of columns")
		add(&b.slash, 4*heads*tokens, "weights of diagonals")
		add(&b.verticals, 4*heads*min(int64(p.verticals), tokens), "chosen columns")
		add(&b.slashes, 4*heads*min(int64(p.slashes), tokens), "chosen diagonals")
		add(&b.estimate, workspace, "workspace of line weights")
		add(&b.topK, counts, "workspace of the choice of lines")
	}
	if p.best > 0 {
		all = append(all, headRun{Head: pattern.Head{Kind: pattern.BlockSparse, A: p.best}})
		add(&b.pooledQ, 2*heads*int64(s.rows())*dim, "pooled queries")
		add(&b.pooledK, 2*int64(md.HeadsKV)*int64(s.blocks())*dim, "pooled keys")
		add(&b.scores, 4*int64(s.scoreWords(md.HeadsQ)), "scores of blocks")
	}
	blocks, columns := s.listStrides(all)
	most := min(md.HeadsQ, s.mostHeads(blocks, columns))
	head := 4 * int64(s.tiles()) * int64(blocks+columns)
	add(&b.lists, max(int64(most)*head, min(listBytes, heads*head)), "lists of sparse prefill")
	add(&b.counts, 16*heads*int64(s.tiles()), "counts of sparse prefill")
	return needs, nil
}

// longestIndex is the largest prefill that a device is told to be ready for, and whether it has a
// prefix.
func (c *Config) longestIndex() (s indexShape, prefix bool) {
	if len(c.Patterns) == 0 {
		return s, false
	}
	s = indexShape{c.Longest, c.Longest}
	switch c.Spec.Prefill {
	case "chunked":
		s.queries = min(c.Longest, c.Spec.MaxTokens)
		return s, s.queries < c.Longest
	case "layer-chunked":
		return s, true
	}
	return s, false
}

// sizeIndex grows the memory of indices for a prefill.
func (d *Device) sizeIndex(s indexShape, prefix bool) {
	if len(d.patterns.layers) == 0 {
		return
	}
	needs, err := d.patterns.needs(d.m, &d.model.Config, s, prefix)
	d.queue.Fail(err)
	for _, g := range needs {
		d.grow(g.b, g.bytes, g.what)
	}
}

// PatternKinds are the kinds of heads that have kernels.
var PatternKinds = []pattern.Kind{pattern.AShape, pattern.VerticalSlash, pattern.BlockSparse}

// supportsPatterns refuses what the kernels of sparse prefill do not support.
func (c *Config) supportsPatterns(m cuda.Machine) error {
	if len(c.Patterns) == 0 {
		return nil
	}
	md := c.Weights.Config()
	if md.HeadDim != 128 {
		return fmt.Errorf("live: sparse prefill of heads of %d values; its kernels support 128 "+
			"(system.prefill_attention)", md.HeadDim)
	}
	if len(c.Patterns) != md.Layers {
		return fmt.Errorf("live: patterns of %d layers, the model has %d", len(c.Patterns), md.Layers)
	}
	info, err := m.Device()
	if err != nil {
		return err
	}
	for layer, heads := range c.Patterns {
		if len(heads) != md.HeadsQ {
			return fmt.Errorf("live: layer %d: patterns of %d heads, the model has %d query heads",
				layer, len(heads), md.HeadsQ)
		}
		for i, h := range heads {
			if err := c.supportsHead(h, int(info.SharedBytes)); err != nil {
				return fmt.Errorf("live: layer %d, head %d: %w (system.prefill_attention)", layer, i,
					err)
			}
		}
	}
	return nil
}

// supportsHead goes by the shared memory of a CTA, which holds the lines of a head.
func (c *Config) supportsHead(h pattern.Head, shared int) error {
	switch h.Kind {
	case pattern.AShape:
	case pattern.VerticalSlash:
		if n := min(h.B, c.Longest); shared > 0 && 4*n > shared {
			return fmt.Errorf("%v: %d slash lines; the kernel holds %d on this GPU", h, n, shared/4)
		}
	case pattern.BlockSparse:
		if h.A > cuda.TopKMax {
			return fmt.Errorf("%v: the kernel chooses at most %d blocks", h, cuda.TopKMax)
		}
	default:
		return fmt.Errorf("%v has no kernel; %s have", h, PatternKinds)
	}
	return nil
}
