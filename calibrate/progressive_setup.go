package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
)

// unevenRounds returns the rounds of each list, rising with the cube of the list's rank to longest.
// The mean is about a quarter of the longest, as with LongBench's prompts, where most heads attend
// to few blocks.
func unevenRounds(lists, longest int64) []int64 {
	rounds := make([]int64, lists)
	for i := range rounds {
		rank := float64(i+1) / float64(lists)
		rounds[i] = max(1, int64(math.Ceil(rank*rank*rank*float64(longest)-1e-9)))
	}
	return rounds
}

// longestRounds returns the rounds of a point's longest list.
func longestRounds(at Point) int64 {
	return at.At("longest_tokens") / blockTokens / at.At("micro_blocks")
}

// reach returns the number of lists that attend to a block in each round.
func reach(at Point, m *hw.Model) []int {
	out := make([]int, longestRounds(at))
	for _, n := range unevenRounds(at.At("batch")*int64(m.KVHeads), longestRounds(at)) {
		for i := range n {
			out[i]++
		}
	}
	return out
}

// setupPSA prepares PSA over equal lists, in one launch or one per microbatch, or over lists that
// end in different rounds.
func (g *gpuRun) setupPSA(p Point) *setup {
	m, batch, micro := g.model(p.Shape), p.At("batch"), p.At("micro_blocks")
	units := batch * int64(m.KVHeads)
	spec := decodeSpec{contexts: equalTo(batch, selectedFrom)}
	if p.Probe == probePSAUneven {
		spec.chosen = unevenRounds(units, longestRounds(p))
		for i := range spec.chosen {
			spec.chosen[i] *= micro
		}
		g.r.Shuffle(len(spec.chosen), func(i, j int) {
			spec.chosen[i], spec.chosen[j] = spec.chosen[j], spec.chosen[i]
		})
	} else {
		spec.chosen = equalTo(units, p.At("budget_tokens")/blockTokens)
	}
	b := g.decode(m, spec)
	psa := g.psaOf(b, int32(micro))
	if p.Probe != probePSALaunches {
		return g.timed(b, psa)
	}
	var launches []cuda.Operation
	for step := range psa.Steps {
		one := *psa
		one.First, one.Steps = step, 1
		launches = append(launches, &one)
	}
	return g.timed(b, launches...)
}

// psaOf is PSA over the same blocks; with epsilon 1 it attends to every block.
func (g *gpuRun) psaOf(b *decodeBatch, micro int32) *cuda.PSAArgs {
	a := b.args
	p := &cuda.PSAArgs{
		Q: a.Q, Pool: a.Pool, Table: a.Table, Context: a.Context, Order: a.List, Count: a.Count,
		Out: a.Out, Batch: a.Batch, HeadsQ: a.HeadsQ, HeadsKV: a.HeadsKV, HeadDim: a.HeadDim,
		BlockTokens: a.BlockTokens, TableStride: a.TableStride, OrderStride: a.ListStride,
		Micro: micro, Steps: (a.MaxBlocks + micro - 1) / micro, Scale: a.Scale, Epsilon: 1,
		Used: g.zeros(4 * b.units), Done: g.zeros(4 * b.units),
	}
	p.State = g.workspace(p)
	return p
}
