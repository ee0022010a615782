package live

import (
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// pass is a sequence of prefill operations of one phase: indices or attention.
type pass struct {
	index bool
	ops   []cuda.Operation
	lists []prefillLists // that the indices built, for Config.Listed
}

// prefillLists is the place of one launch's lists.
type prefillLists struct {
	row    *sim.Row
	heads  [2]int
	attend *cuda.MIAttendArgs
}

// pass appends operations to the last pass, or to a new one of the other phase.
func (p *plan) pass(index bool, ops ...cuda.Operation) *pass {
	if n := len(p.passes); n == 0 || p.passes[n-1].index != index {
		p.passes = append(p.passes, pass{index: index})
	}
	last := &p.passes[len(p.passes)-1]
	last.ops = append(last.ops, ops...)
	return last
}

// attendPrefills launches the passes of planAttention.
func (d *paged) attendPrefills(layer int) {
	for i := range d.plan.passes {
		p := &d.plan.passes[i]
		d.launch(p.ops...)
		if p.index {
			d.clock.mark(phasePrefillIndex)
			d.showLists(layer, p.lists)
		} else {
			d.clock.mark(phasePrefill)
		}
	}
}

// indexing plans the sparse attention of one prefill in one layer; a covers all heads.
type indexing struct {
	*patterns
	indexShape
	row         *sim.Row
	a           *cuda.PrefillArgs
	group       int
	pooled      bool // keys
	bs, cs      int  // of the launch's lists: blocks and columns a tile
	first, most int  // its first head; heads that its lists have memory for
}

// planAttention plans the attention of a prefill. It is dense, or for each section it computes the
// chunk's indices and attends by them.
func (d *paged) planAttention(layer int, row *sim.Row, a *cuda.PrefillArgs) {
	if len(d.patterns.layers) == 0 {
		d.plan.pass(false, a)
		return
	}
	x := &indexing{patterns: &d.patterns, row: row, a: a, group: int(a.HeadsQ / a.HeadsKV),
		indexShape: indexShape{row.To - row.From, row.To}}
	if a.Table != 0 {
		d.plan.pass(false, x.gather())
	}
	for i := range x.layers[layer] {
		s := &x.layers[layer][i]
		if s.listed() {
			x.planListed(&d.plan, s)
			continue
		}
		for _, part := range launches(s.from, s.to, x.group, s.to) {
			h := s.runs[0].Head
			d.plan.pass(false, &cuda.MIAttendArgs{Prefill: headsOf(*a, part), Sink: int32(h.A),
				Window: int32(h.B)})
		}
	}
}

// gather copies keys and values of a prompt with a prefix from their blocks to tensors.
func (x *indexing) gather() cuda.Operation {
	a, b := x.a, &x.memory
	dim := int64(a.HeadDim)
	g := &cuda.MIGatherArgs{Pool: a.Pool, Table: a.Table, K: b.k.At, V: b.v.At,
		HeadStride: int64(x.tokens) * dim, TableStride: a.TableStride, Tokens: int32(x.tokens),
		Heads: a.HeadsKV, BlockTokens: a.BlockTokens}
	a.Pool, a.Table, a.TableStride, a.BlockTokens = 0, 0, 0, 0
	a.K, a.KTokenStride, a.KHeadStride = g.K, dim, g.HeadStride
	a.V, a.VTokenStride, a.VHeadStride = g.V, dim, g.HeadStride
	return g
}

// planListed plans heads that attend by lists, in parts that fit the lists' memory.
func (x *indexing) planListed(p *plan, s *section) {
	x.bs, x.cs = x.listStrides(s.runs)
	for _, part := range launches(s.from, s.to, x.group, x.mostHeads(x.bs, x.cs)) {
		x.first, x.most = part[0], part[1]-part[0]
		attend := &cuda.MIAttendArgs{Prefill: headsOf(*x.a, part), BlockStride: int32(x.bs),
			ColumnStride: int32(x.cs)}
		attend.Blocks, attend.Columns, attend.Counts = x.lists(part[0])
		built := p.pass(true)
		for _, r := range s.runs {
			if r.from, r.to = max(r.from, part[0]), min(r.to, part[1]); r.from >= r.to {
				continue
			}
			if r.Kind == pattern.BlockSparse {
				built.ops = append(built.ops, x.blockSparse(r)...)
			} else {
				built.ops = append(built.ops, x.verticalSlash(r)...)
			}
		}
		built.lists = append(built.lists, prefillLists{x.row, part, attend})
		p.pass(false, attend)
	}
}

// lists returns the addresses of a head's lists.
func (x *indexing) lists(head int) (blocks, columns, counts cuda.Ptr) {
	at := int64(head-x.first) * int64(x.tiles())
	base := x.memory.lists.At
	columnsAt := base + cuda.Ptr(4*int64(x.most)*int64(x.tiles())*int64(x.bs))
	if x.cs == 0 {
		columnsAt = base // no list has any
	}
	return base + cuda.Ptr(4*at*int64(x.bs)), columnsAt + cuda.Ptr(4*at*int64(x.cs)),
		x.memory.counts.At + cuda.Ptr(16*at)
}

// verticalSlash finds the lines of a run of heads and converts them to lists.
func (x *indexing) verticalSlash(r headRun) (ops []cuda.Operation) {
	b, n := &x.memory, r.to-r.from
	for _, part := range launches(r.from, r.to, x.group, n) {
		at := cuda.Ptr(4 * int64(part[0]-r.from) * int64(x.tokens))
		ops = append(ops, &cuda.MIEstimateArgs{Prefill: headsOf(*x.a, part),
			Vertical: b.vertical.At + at, Slash: b.slash.At + at, Workspace: b.estimate.At,
			Stride: int64(x.tokens)})
	}
	choose := func(scores, list cuda.Ptr, k int) *cuda.MITopKArgs {
		return &cuda.MITopKArgs{Scores: scores, List: list, Workspace: b.topK.At,
			ScoreStride: int64(x.tokens), ListStride: int64(k), Rows: int32(n), N: int32(x.tokens),
			K: int32(k), First: pattern.KeptLines}
	}
	vertical := choose(b.vertical.At, b.verticals.At, min(r.A, x.tokens))
	slash := choose(b.slash.At, b.slashes.At, min(r.B, x.tokens))
	lines := &cuda.MILinesArgs{Vertical: vertical.List, Slash: slash.List,
		VerticalStride: vertical.ListStride, SlashStride: slash.ListStride,
		VerticalCount: vertical.K, SlashCount: slash.K, HeadsQ: int32(n),
		QTokens: int32(x.queries), Prefix: int32(x.tokens - x.queries),
		BlockStride: int32(x.bs), ColumnStride: int32(x.cs)}
	lines.Blocks, lines.Columns, lines.Counts = x.lists(r.from)
	if l, ok := x.drawn[r.Head]; ok {
		l.impose(lines, x.tokens)
	}
	return append(ops, vertical, slash, lines)
}

// blockSparse finds the blocks of a run of heads. Keys are pooled once per layer.
func (x *indexing) blockSparse(r headRun) (ops []cuda.Operation) {
	b, dim := &x.memory, int64(x.a.HeadDim)
	if !x.pooled {
		x.pooled = true
		ops = append(ops, &cuda.MIPoolArgs{X: x.a.K, Out: b.pooledK.At, TokenStride: x.a.KTokenStride,
			HeadStride: x.a.KHeadStride, Tokens: int32(x.tokens), Heads: x.a.HeadsKV})
	}
	run := headsOf(*x.a, [2]int{r.from, r.to})
	ops = append(ops, &cuda.MIPoolArgs{X: run.Q, Out: b.pooledQ.At, TokenStride: run.QTokenStride,
		HeadStride: run.QHeadStride, Tokens: run.QTokens, Heads: int32(r.to - r.from)})
	pooled := func(base cuda.Ptr, head, blocks int) cuda.Ptr {
		return base + cuda.Ptr(2*int64(head)*int64(blocks)*dim)
	}
	for _, part := range launches(r.from, r.to, x.group, r.to-r.from) {
		heads := headsOf(*x.a, part)
		choose := &cuda.MIBlocksArgs{Q: pooled(b.pooledQ.At, part[0]-r.from, x.rows()),
			K: pooled(b.pooledK.At, part[0]/x.group, x.blocks()), Scores: b.scores.At,
			ScoreCount: int64(x.scoreWords(int(x.a.HeadsQ))), QTokens: run.QTokens,
			Prefix: run.Prefix, HeadsQ: heads.HeadsQ, HeadsKV: heads.HeadsKV,
			BlockStride: int32(x.bs), Top: int32(min(r.A, x.blocks()))}
		choose.Blocks, _, choose.Counts = x.lists(part[0])
		ops = append(ops, choose)
	}
	return ops
}

// showLists passes the lists to Config.Listed, if set.
func (d *paged) showLists(layer int, lists []prefillLists) {
	if d.cfg.Listed == nil {
		return
	}
	for _, l := range lists {
		a, heads := l.attend, l.heads[1]-l.heads[0]
		rows := heads * ceilDiv(int(a.Prefill.QTokens), indexTile)
		shown := &PrefillLists{From: l.heads[0], To: l.heads[1], BlockStride: int(a.BlockStride),
			ColumnStride: int(a.ColumnStride)}
		shown.Blocks = d.download(a.Blocks, rows*shown.BlockStride)
		shown.Columns = d.download(a.Columns, rows*shown.ColumnStride)
		shown.Counts = d.download(a.Counts, 4*rows)
		if d.queue.Err() == nil {
			d.cfg.Listed(l.row.ID, layer, l.row.From, l.row.To, shown)
		}
	}
}

// download waits for the stream and returns words of device memory.
func (d *Device) download(from cuda.Ptr, words int) (out []int32) {
	if words > 0 {
		d.show(from, 4*int64(words), func(m cuda.HostMemory) {
			out = slices.Clone(cuda.Slice[int32](m)[:words])
		})
	}
	return out
}
