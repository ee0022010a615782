package calibrate

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
	"math"
)

// unevenRounds is how many rounds each of some lists lasts, the shortest first,
// where the longest lasts the given number: the cube of a list's rank. A list
// lasts about a quarter of the longest then, as with LongBench's prompts, where
// few heads attend to much.
func unevenRounds(lists, longest int64) []int64 {
	rounds := make([]int64, lists)
	for i := range rounds {
		rank := float64(i+1) / float64(lists)
		rounds[i] = max(1, int64(math.Ceil(rank*rank*rank*float64(longest)-1e-9)))
	}
	return rounds
}

// longestRounds are those of a point's longest list.
func longestRounds(at Point) int64 {
	return at.At("longest_tokens") / blockTokens / at.At("micro_blocks")
}

// reach is how many lists of a point attend to something in each round.
func reach(at Point, m *hw.Model) []int {
	out := make([]int, longestRounds(at))
	for _, n := range unevenRounds(at.At("batch")*int64(m.KVHeads), longestRounds(at)) {
		for i := range n {
			out[i]++
		}
	}
	return out
}

// setupPSA readies PSA over equal lists, in one launch or one a microbatch, or over lists that
// end in different rounds.
func (g *gpuBench) setupPSA(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	batch := p.At("batch")
	units := batch * int64(m.KVHeads)
	spec := decodeSpec{contexts: equalTo(batch, contextBehind)}
	if p.Probe == probePSAUneven {
		spec.chosen = unevenRounds(units, longestRounds(p))
		for i := range spec.chosen {
			spec.chosen[i] *= p.At("micro_blocks")
		}
		g.r.Shuffle(len(spec.chosen), func(i, j int) { spec.chosen[i], spec.chosen[j] = spec.chosen[j], spec.chosen[i] })
	} else {
		spec.chosen = equalTo(units, p.At("budget_tokens")/blockTokens)
	}
	b, err := g.decodeOp(s, m, spec)
	if err != nil {
		return nil, err
	}
	psa, err := g.psaOf(s, b, int32(p.At("micro_blocks")))
	if err != nil {
		return nil, err
	}
	if p.Probe != probePSALaunches {
		return b.timed(g, psa), nil
	}
	var launches []cuda.Operation
	for step := range psa.Steps {
		one := *psa
		one.First, one.Steps = step, 1
		launches = append(launches, &one)
	}
	return b.timed(g, launches...), nil
}

// psaOf is PSA over the same blocks; epsilon 1 attends to all of them.
func (g *gpuBench) psaOf(s *cuda.Session, b *decodeBatch, micro int32) (*cuda.PSAArgs, error) {
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
