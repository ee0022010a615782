package emulator

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// sparse is a prefill of 150 queries after 70 tokens, two query heads of one KV head.
type sparse struct {
	*fixture
	args cuda.PrefillArgs
	ref  reference.Prefill
}

const (
	sparseQueries, sparsePrefix, sparseHeads = 150, 70, 2
	sparseTotal                              = sparseQueries + sparsePrefix
)

func newSparse(t *testing.T) *sparse {
	const dim = 128
	g := newFixture(t, Config{})
	draw := func(n int) (cuda.Ptr, []float64) {
		h := make([]cuda.Half, n)
		for i := range h {
			h[i] = cuda.HalfOf(g.r.NormFloat64())
		}
		return upload(g, h), cuda.Floats(h)
	}
	q, qf := draw(sparseQueries * sparseHeads * dim)
	k, kf := draw(sparseTotal * dim)
	v, vf := draw(sparseTotal * dim)
	s := &sparse{fixture: g,
		ref: reference.Prefill{Shape: reference.Shape{Batch: 1, HeadsQ: sparseHeads,
			HeadsKV: 1, Dim: dim}, Q: qf, K: kf, V: vf, QTokens: sparseQueries, Prefix: sparsePrefix,
			Scale: float64(float32(1 / math.Sqrt(dim)))}}
	s.args = cuda.PrefillArgs{Q: q, K: k, V: v, Out: g.device(2 * sparseQueries * sparseHeads * dim),
		QTokenStride: sparseHeads * dim, QHeadStride: dim, KTokenStride: dim, KHeadStride: dim,
		VTokenStride: dim, VHeadStride: dim, OutTokenStride: sparseHeads * dim, OutHeadStride: dim,
		QTokens: sparseQueries, Prefix: sparsePrefix, HeadsQ: sparseHeads, HeadsKV: 1, HeadDim: dim,
		Scale: float32(1 / math.Sqrt(dim))}
	return s
}

// compare holds the answer against dense attention under a mask.
func (s *sparse) compare(a *cuda.MIAttendArgs, sees func(head, query, key int) int) {
	s.t.Helper()
	s.must(s.Launch(a, 0))
	got := cuda.Floats(download[cuda.Half](s.fixture, s.args.Out, sparseQueries*sparseHeads*128))
	ref := s.ref
	ref.Sees = sees
	want := ref.Run()
	for i := range want {
		if math.Abs(got[i]-want[i]) > 2e-3 {
			s.t.Fatalf("value %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func TestMIAttendAShape(t *testing.T) {
	s := newSparse(t)
	for _, c := range [][2]int{{0, 0}, {3, 20}, {80, 64}} {
		s.compare(&cuda.MIAttendArgs{Prefill: s.args, Sink: int32(c[0]), Window: int32(c[1])},
			func(_, query, key int) int {
				p := sparsePrefix + query
				if key <= p && (c[1] == 0 || key < c[0] || p-key < c[1]) {
					return 1
				}
				return 0
			})
	}
}

// The whole of a vertical-slash head: weights, lines, lists, attention.
func TestMIVerticalSlash(t *testing.T) {
	const kv, ks = 20, 17
	s := newSparse(t)
	tiles := (sparseQueries + 127) / 128
	e := &cuda.MIEstimateArgs{Prefill: s.args, Stride: sparseTotal,
		Vertical: s.device(sparseHeads * sparseTotal * 4), Slash: s.device(sparseHeads * sparseTotal * 4)}
	bytes, err := s.Workspace(e)
	s.must(err)
	e.Workspace = s.device(int(bytes))
	s.must(s.Launch(e, 0))
	top := func(scores cuda.Ptr, k int) cuda.Ptr {
		a := &cuda.MITopKArgs{Scores: scores, List: s.device(sparseHeads * k * 4), Rows: sparseHeads,
			ScoreStride: sparseTotal, ListStride: int64(k), N: sparseTotal, K: int32(k), First: 5}
		bytes, err := s.Workspace(a)
		s.must(err)
		a.Workspace = s.device(int(bytes))
		s.must(s.Launch(a, 0))
		return a.List
	}
	most := min(ks, sparseTotal/64+2)
	l := &cuda.MILinesArgs{Vertical: top(e.Vertical, kv), Slash: top(e.Slash, ks), VerticalStride: kv,
		SlashStride: ks, VerticalCount: kv, SlashCount: ks, HeadsQ: sparseHeads,
		QTokens: sparseQueries, Prefix: sparsePrefix, BlockStride: int32(2 * most), ColumnStride: kv,
		Blocks:  s.device(sparseHeads * tiles * 2 * most * 4),
		Columns: s.device(sparseHeads * tiles * kv * 4),
		Counts:  s.device(sparseHeads * tiles * 16)}
	s.must(s.Launch(l, 0))

	seen := make([][2]reference.RowLists, 0) // of a head's rows of queries
	for head := range sparseHeads {
		vertical, slash := s.ref.LineWeights(head)
		choose := func(w []float64, k int) []int32 {
			rounded := make([]float64, len(w))
			for i := range w {
				rounded[i] = float64(float32(w[i]))
			}
			list := reference.TopK(rounded, k, 5, 0)
			slices.Sort(list)
			return list
		}
		v, d := choose(vertical, kv), choose(slash, ks)
		for tile := range tiles {
			end := sparsePrefix + tile*128 + 64
			seen = append(seen, [2]reference.RowLists{reference.MergeLines(v, d, end),
				reference.MergeLines(v, d, end+64)})
		}
	}
	s.compare(&cuda.MIAttendArgs{Prefill: s.args, BlockStride: l.BlockStride,
		ColumnStride: l.ColumnStride, Blocks: l.Blocks, Columns: l.Columns, Counts: l.Counts},
		func(head, query, key int) int {
			r := seen[head*tiles+query/128][query/64%2]
			if key > sparsePrefix+query {
				return 0
			}
			in := func(b int32) bool { return int(b) <= key && key < int(b)+64 }
			if slices.Contains(r.Columns, int32(key)) || slices.ContainsFunc(r.Blocks, in) {
				return 1
			}
			return 0
		})
}

// The whole of a block-sparse head: means, choice, attention.
func TestMIBlockSparse(t *testing.T) {
	const top = 2
	s := newSparse(t)
	rows, blocks, tiles := (sparseQueries+63)/64, (sparseTotal+63)/64, (sparseQueries+127)/128
	q, k := s.device(sparseHeads*rows*256), s.device(blocks*256)
	s.must(s.Launch(&cuda.MIPoolArgs{X: s.args.Q, Out: q, TokenStride: s.args.QTokenStride,
		HeadStride: 128, Tokens: sparseQueries, Heads: sparseHeads}, 0))
	s.must(s.Launch(&cuda.MIPoolArgs{X: s.args.K, Out: k, TokenStride: 128, HeadStride: 128,
		Tokens: sparseTotal, Heads: 1}, 0))
	a := &cuda.MIBlocksArgs{Q: q, K: k, Scores: s.device(64 * 64 * 4), ScoreCount: 64 * 64,
		QTokens: sparseQueries, Prefix: sparsePrefix, HeadsQ: sparseHeads, HeadsKV: 1,
		BlockStride: 2 * top, Top: top, Blocks: s.device(sparseHeads * tiles * 2 * top * 4),
		Counts: s.device(sparseHeads * tiles * 16)}
	s.must(s.Launch(a, 0))
	pq, pk := cuda.Floats(download[cuda.Half](s.fixture, q, sparseHeads*rows*128)),
		cuda.Floats(download[cuda.Half](s.fixture, k, blocks*128))
	chosen := map[[2]int][]int32{}
	for head := range sparseHeads {
		for row := range rows {
			scores := make([]float64, blocks)
			for b := range scores {
				for d := range 128 {
					scores[b] += pq[(head*rows+row)*128+d] * pk[b*128+d]
				}
			}
			chosen[[2]int{head, row}] = reference.TopBlocks(scores, row, sparseQueries, sparsePrefix, top)
		}
	}
	s.compare(&cuda.MIAttendArgs{Prefill: s.args, BlockStride: a.BlockStride, Blocks: a.Blocks,
		Columns: a.Blocks, Counts: a.Counts},
		func(head, query, key int) int {
			if key <= sparsePrefix+query && slices.Contains(chosen[[2]int{head, query / 64}],
				int32(key/64*64)) {
				return 1
			}
			return 0
		})
}

func TestMIFaults(t *testing.T) {
	s := newSparse(t)
	bad := s.args
	bad.HeadDim = 64
	if err := s.Launch(&cuda.MIAttendArgs{Prefill: bad}, 0); !errors.Is(err, cuda.BadArgument) {
		t.Errorf("64 values a head: %v", err)
	}
	if err := s.Launch(&cuda.MIAttendArgs{Prefill: s.args, Blocks: s.device(16)}, 0); !errors.Is(err,
		cuda.BadArgument) {
		t.Errorf("blocks without counts: %v", err)
	}
	if err := s.Launch(&cuda.MITopKArgs{Rows: 1, N: 3, K: 4}, 0); !errors.Is(err, cuda.BadArgument) {
		t.Errorf("more chosen than there are: %v", err)
	}
	counts := upload(s.fixture, slices.Repeat([]int32{3, 0, 0, 0}, 4))
	if err := s.Launch(&cuda.MIAttendArgs{Prefill: s.args, BlockStride: 2, Blocks: s.device(64),
		Columns: s.device(64), Counts: counts}, 0); !errors.Is(err, cuda.Failed) {
		t.Errorf("3 blocks in lists of 2: %v", err)
	}
}

// Blocks become tensors that attention reads as it reads the blocks themselves.
func TestMIGather(t *testing.T) {
	const dim, tokens, total, heads, stride = 128, 16, 150, 2, 11
	g := newFixture(t, Config{})
	pool, values := g.normal(2*24*tokens*dim, 1)
	table := make([]int32, heads*stride)
	for i, slot := range g.r.Perm(24)[:heads*stride] {
		table[i] = int32(slot)
	}
	row := int64(total+3) * dim
	a := &cuda.MIGatherArgs{
		Pool:  upload(g, pool),
		Table: upload(g, table),
		K:     g.device(int(2 * heads * row)),
		V: g.device(
			int(2 * heads * row),
		),
		HeadStride:  row,
		TableStride: stride,
		Tokens:      total,
		Heads:       heads,
		BlockTokens: tokens,
	}
	g.must(g.Launch(a, 0))
	for part, p := range []cuda.Ptr{a.K, a.V} {
		got := cuda.Floats(download[cuda.Half](g, p, heads*int(row)))
		for head := range heads {
			for i := range total {
				at := ((2*int(table[head*stride+i/tokens])+part)*tokens + i%tokens) * dim
				if !slices.Equal(got[head*int(row)+i*dim:][:dim], values[at:at+dim]) {
					t.Fatalf("part %d, head %d: token %d differs", part, head, i)
				}
			}
		}
	}
	short := &cuda.MIGatherArgs{Tokens: 3, Heads: 1, BlockTokens: 16, HeadStride: 256}
	if err := g.Launch(short, 0); err == nil {
		t.Error("a stride of two tokens holds three")
	}
}
