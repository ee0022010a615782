package calibrate

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/hw"
)

// contextBehind is the context that budgets are selected from, in tokens.
const contextBehind = 32768

// decodeOp readies decode attention over a batch (batch.go).
func (g *rig) decodeOp(s *cuda.Session, m *hw.Model, spec decodeSpec) (*decodeBatch, error) {
	b := layOut(g.r, m, spec)
	a, d, batch := &b.args, int64(m.HeadDim), int64(len(spec.contexts))
	contexts := make([]int32, batch)
	for i, n := range spec.contexts {
		contexts[i] = int32(n)
	}
	var err error
	set := func(p *cuda.Ptr, get func() (cuda.Ptr, error)) {
		if err == nil {
			*p, err = get()
		}
	}
	set(&a.Pool, func() (cuda.Ptr, error) { return g.random(s, b.slots*2*blockTokens*d) })
	set(&a.Q, func() (cuda.Ptr, error) { return g.random(s, batch*int64(m.QHeads)*d) })
	set(&a.Out, func() (cuda.Ptr, error) { return g.poisoned(s, 2*batch*int64(m.QHeads)*d) })
	set(&a.Table, func() (cuda.Ptr, error) { return upload(g, s, b.table) })
	set(&a.Context, func() (cuda.Ptr, error) { return upload(g, s, contexts) })
	if spec.chosen != nil {
		order, count := make([]int32, b.units*int64(a.ListStride)), make([]int32, b.units)
		for u, picked := range b.lists {
			count[u] = int32(len(picked))
			copy(order[u*int(a.ListStride):], picked)
		}
		set(&a.List, func() (cuda.Ptr, error) { return upload(g, s, order) })
		set(&a.Count, func() (cuda.Ptr, error) { return upload(g, s, count) })
	}
	if err != nil {
		return nil, err
	}
	bytes, err := s.Workspace(a)
	if err != nil {
		return nil, err
	}
	a.Workspace, err = g.zeros(s, bytes)
	return b, err
}

// check computes some heads of what was just run anew, of the last request among
// them, which is the longest where they differ.
func (b *decodeBatch) check(g *rig, s *cuda.Session) error {
	a := &b.args
	d, group := int64(a.HeadDim), int64(a.HeadsQ/a.HeadsKV)
	values := 2 * blockTokens * d // of a block
	for _, unit := range []int64{0, b.units - 1, g.r.Int64N(b.units)} {
		head := unit*group + g.r.Int64N(group)
		q, err := floats(s, a.Q+cuda.Ptr(2*head*d), d)
		if err != nil {
			return err
		}
		sum := reference.NewSoftmax(int(d))
		for _, block := range b.lists[unit] {
			kv, err := floats(s, a.Pool+cuda.Ptr(2*b.slot(unit, block)*values), values)
			if err != nil {
				return err
			}
			attend(&sum, q, kv[:values/2], kv[values/2:], float64(a.Scale))
		}
		want := make([]float64, d)
		sum.Result(want)
		got, err := halves(s, a.Out+cuda.Ptr(2*head*d), d)
		if err != nil {
			return err
		}
		if err := near(fmt.Sprintf("unit %d, head %d", unit, head), got, want); err != nil {
			return err
		}
	}
	return nil
}

// microbatch is PSA's at most points, in blocks.
const microbatch = 16

// specOf is what a point's batch attends to.
func (g *rig) specOf(p Point, m *hw.Model) decodeSpec {
	batch := p.At("batch")
	units := batch * int64(m.KVHeads)
	if p.Probe == probeDense {
		return decodeSpec{contexts: equalTo(batch, p.At("context_tokens"))}
	}
	if p.Probe == probePSAUneven {
		chosen := unevenRounds(units, longestRounds(p))
		for i := range chosen {
			chosen[i] *= p.At("micro_blocks")
		}
		g.r.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		return decodeSpec{contexts: equalTo(batch, contextBehind), chosen: chosen}
	}
	return decodeSpec{contexts: equalTo(batch, contextBehind), chosen: equalTo(units, p.At("budget_tokens")/blockTokens)}
}

// batchOf readies a point's batch of decodes, and says of what model.
func (g *rig) batchOf(s *cuda.Session, p Point) (*hw.Model, *decodeBatch, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, nil, err
	}
	b, err := g.decodeOp(s, m, g.specOf(p, m))
	return m, b, err
}

func (g *rig) setupDecode(s *cuda.Session, p Point) (*setup, error) {
	_, b, err := g.batchOf(s, p)
	if err != nil {
		return nil, err
	}
	t := &setup{bench: cuda.Bench{Calls: []cuda.Operation{&b.args}, FlushL2: true}}
	run := func(s *cuda.Session) error { return s.Launch(&b.args, 0) }
	if p.Probe == probePSA || p.Probe == probePSALaunches || p.Probe == probePSAUneven {
		psa, err := g.psaOf(s, b, int32(p.At("micro_blocks")))
		if err != nil {
			return nil, err
		}
		launches := []*cuda.PSAArgs{psa}
		if p.Probe == probePSALaunches {
			launches = nil
			for step := range psa.Steps {
				one := *psa
				one.First, one.Steps = step, 1
				launches = append(launches, &one)
			}
		}
		t.bench.Calls = nil
		for _, l := range launches {
			t.bench.Calls = append(t.bench.Calls, l)
		}
		run = func(s *cuda.Session) error {
			for _, l := range launches {
				if err := s.Launch(l, 0); err != nil {
					return err
				}
			}
			return nil
		}
	}
	t.verify = func(s *cuda.Session) error {
		if err := run(s); err != nil {
			return err
		}
		return b.check(g, s)
	}
	return t, nil
}

// psaOf is PSA over the same blocks; epsilon 1 attends to all of them.
func (g *rig) psaOf(s *cuda.Session, b *decodeBatch, micro int32) (*cuda.PSAArgs, error) {
	a := b.args
	p := &cuda.PSAArgs{Q: a.Q, Pool: a.Pool, Table: a.Table, Context: a.Context, Order: a.List, Count: a.Count, Out: a.Out,
		Batch: a.Batch, HeadsQ: a.HeadsQ, HeadsKV: a.HeadsKV, HeadDim: a.HeadDim, BlockTokens: a.BlockTokens, TableStride: a.TableStride, OrderStride: a.ListStride,
		Micro: micro, Steps: (a.MaxBlocks + micro - 1) / micro, Scale: a.Scale, Epsilon: 1}
	var err error
	if p.Used, err = g.zeros(s, 4*b.units); err != nil {
		return nil, err
	}
	if p.Done, err = g.zeros(s, 4*b.units); err != nil {
		return nil, err
	}
	bytes, err := s.Workspace(p)
	if err != nil {
		return nil, err
	}
	p.State, err = g.zeros(s, bytes)
	return p, err
}

// setupSelect readies scores and top-k over the digests of whole contexts.
func (g *rig) setupSelect(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	d, batch := int64(m.HeadDim), p.At("batch")
	blocks, k, units := p.At("context_tokens")/blockTokens, p.At("budget_tokens")/blockTokens, batch*int64(m.KVHeads)
	first, count := make([]int64, units), make([]int32, units)
	for u := range first {
		first[u], count[u] = int64(u)*blocks, int32(blocks)
	}
	a := &cuda.SelectArgs{
		Scores: cuda.ScoresArgs{Batch: int32(batch), HeadsQ: int32(m.QHeads), HeadsKV: int32(m.KVHeads), HeadDim: int32(d), ScoreStride: int32(blocks), MaxBlocks: int32(blocks)},
		TopK:   cuda.TopKArgs{Units: int32(units), ScoreStride: int32(blocks), ListStride: int32(k), K: int32(k), Sink: 2, Window: 2},
	}
	set := func(p *cuda.Ptr, get func() (cuda.Ptr, error)) {
		if err == nil {
			*p, err = get()
		}
	}
	set(&a.Scores.Q, func() (cuda.Ptr, error) { return g.random(s, batch*int64(m.QHeads)*d) })
	set(&a.Scores.Meta, func() (cuda.Ptr, error) { return g.digests(s, units*blocks, d) })
	set(&a.Scores.First, func() (cuda.Ptr, error) { return upload(g, s, first) })
	set(&a.Scores.Count, func() (cuda.Ptr, error) { return upload(g, s, count) })
	set(&a.Scores.Scores, func() (cuda.Ptr, error) { return g.zeros(s, 4*units*blocks) })
	set(&a.TopK.List, func() (cuda.Ptr, error) { return g.poisoned(s, 4*units*k) })
	set(&a.TopK.Count, func() (cuda.Ptr, error) { return g.poisoned(s, 4*units) })
	set(&a.Arrived, func() (cuda.Ptr, error) { return g.zeros(s, 4*units) })
	a.TopK.Scores, a.TopK.Blocks = a.Scores.Scores, a.Scores.Count
	if err != nil {
		return nil, err
	}
	return &setup{bench: cuda.Bench{Calls: []cuda.Operation{a}, FlushL2: true}, verify: func(s *cuda.Session) error {
		if err := s.Launch(a, 0); err != nil {
			return err
		}
		return checkSelect(s, a, g.r.Int64N(units))
	}}, nil
}

// digests returns the digests of random blocks: scores count on hi >= lo. Some
// thousand blocks serve all of them.
func (g *rig) digests(s *cuda.Session, count, d int64) (cuda.Ptr, error) {
	const distinct = 4096
	slot, dst := make([]int32, count), make([]int64, count)
	for i := range slot {
		slot[i], dst[i] = int32(g.r.IntN(distinct)), int64(i)
	}
	a := &cuda.DigestArgs{Count: count, HeadDim: int32(d), BlockTokens: blockTokens}
	var err error
	if a.Meta, err = g.poisoned(s, 2*count*2*d); err != nil {
		return 0, err
	}
	if a.Pool, err = g.random(s, distinct*2*blockTokens*d); err != nil {
		return 0, err
	}
	if a.Slot, err = upload(g, s, slot); err != nil {
		return 0, err
	}
	if a.Dst, err = upload(g, s, dst); err != nil {
		return 0, err
	}
	return a.Meta, s.Launch(a, 0)
}

// checkSelect scores one unit's blocks anew. The kernel adds in another order,
// so a block may be chosen whose score is less than the least of the reference's
// choice by a rounding, and no more.
func checkSelect(s *cuda.Session, a *cuda.SelectArgs, unit int64) error {
	d, n, group := int64(a.Scores.HeadDim), int64(a.Scores.MaxBlocks), int64(a.Scores.HeadsQ/a.Scores.HeadsKV)
	q, err := floats(s, a.Scores.Q+cuda.Ptr(2*unit*group*d), group*d)
	if err != nil {
		return err
	}
	meta, err := floats(s, a.Scores.Meta+cuda.Ptr(2*unit*n*2*d), n*2*d)
	if err != nil {
		return err
	}
	scores := make([]float64, n)
	for i := range scores {
		digest := meta[int64(i)*2*d:]
		for h := range group {
			scores[i] += reference.Score(q[h*d:(h+1)*d], digest[:d], digest[d:2*d]) / float64(group)
		}
	}
	want := reference.TopK(scores, int(a.TopK.K), int(a.TopK.Sink), int(a.TopK.Window))
	got := make([]int32, a.TopK.K)
	if err := cuda.Download(s, got, a.TopK.List+cuda.Ptr(4*unit*int64(a.TopK.ListStride))); err != nil {
		return err
	}
	slack := 1e-3 * (slices.Max(scores) - slices.Min(scores))
	for i, w := range want {
		g := got[i]
		if g < 0 || int64(g) >= n || slices.Contains(got[:i], g) {
			return fmt.Errorf("unit %d: choice %d is block %d", unit, i, g)
		}
		if !(math.Abs(scores[g]-scores[w]) <= slack) {
			return fmt.Errorf("unit %d: choice %d is block %d of score %.4g, want block %d of %.4g", unit, i, g, scores[g], w, scores[w])
		}
	}
	return nil
}
