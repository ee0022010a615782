package hw

import (
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// Single cost models of a profile, in seconds, as Device combines them: for
// calibration, which compares them with measurements, and for plots.

// Cost prices one part of a layer's work on one card for one model.
type Cost interface {
	// Seconds returns the part's time and reports whether the work is beyond what was measured.
	Seconds(w *sim.Work) (s float64, beyond bool)
}

// Costs are the parts of a layer, each as if it ran without the others.
type Costs struct {
	GEMM, Elementwise, PrefillAttention, DenseDecode, SparseDecode, Scoring, BlockClose Cost
}

// Costs returns those of a model, K and V of prompts in tensors.
func (p *Profile) Costs(m *Model) Costs {
	gemm, elementwise, prefill := newGEMM(p, m), newElementwise(p, m),
		newPrefillAttention(p, m, 0)
	dense, sparse, scoring, closing := newDense(p, m), newSparse(p, m), newScoring(p, m),
		newBlockClose(p, m)
	return Costs{&gemm, &elementwise, &prefill, &dense, &sparse, &scoring, &closing}
}

// Seconds returns the time of one part of some work.
func Seconds(c Cost, w sim.Work) float64 {
	s, _ := c.Seconds(&w)
	return s
}

// LoadSeconds returns the time in which an engine loads blocks from a host pool of the given size.
func (p *Profile) LoadSeconds(engine string, blocks, blockBytes, poolBytes int64) (float64, error) {
	l, err := newLoader(p, engine)
	return l.secondsOver(poolBytes, blocks, blockBytes), err
}

// SaveSeconds returns the time in which an engine saves blocks to a host pool of the given size,
// and while prefill is computed; threads are FlashD2H's, 0 for the profile's own.
func (p *Profile) SaveSeconds(engine string, blocks, blockBytes, poolBytes int64, threads int) (
	alone, overlapped float64, err error) {
	s, o, err := newSaver(p, engine, threads)
	return s.secondsOver(poolBytes, blocks, blockBytes), o.secondsOver(poolBytes, blocks, blockBytes),
		err
}

func (t *transfer) secondsOver(poolBytes, blocks, blockBytes int64) float64 {
	t.over(poolBytes)
	return t.seconds(blocks, blockBytes)
}

// PrefillFLOPs returns what one layer's attention of a chunk computes.
func PrefillFLOPs(m *Model, span sim.Span) float64 {
	a := prefillAttention{flops: 4 * float64(m.HeadDim*m.QHeads)}
	return a.spanFLOPs(span)
}

// HostStepSeconds returns the host's time of a step, layers apart.
func (p *Profile) HostStepSeconds(requests int64) float64 {
	return p.Host.Step.SI() + float64(requests)*p.Host.Request.optional()
}

// PrefillSeconds returns the time of one layer's attention to a chunk, each query head by its
// pattern, and of the indices; without groups it is dense. What is before the chunk is in KV blocks
// of so many tokens, or, at 0, in tensors.
func (p *Profile) PrefillSeconds(m *Model, groups []pattern.Group, span sim.Span,
	blockTokens int) (attention, index float64) {
	dense := newPrefillAttention(p, m, blockTokens)
	if len(groups) == 0 || groups[0].Kind == pattern.Dense {
		attention, _ = dense.of([]sim.Span{span})
		return attention, 0
	}
	s := newSparsePrefill(p, m, dense)
	return s.of(groups, []sim.Span{span})
}

// GatherSeconds returns the time in which K and V of one layer are copied from KV blocks to
// tensors; 0 where the profile does not know.
func (p *Profile) GatherSeconds(m *Model, tokens int) float64 {
	a := newPrefillAttention(p, m, 1)
	return a.gathered(sim.Span{Query: 1, Prefix: tokens - 1})
}
