package cost

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// The cost models of a profile by themselves, in seconds, as Device combines them. Calibration
// compares them with measurements; plots use them too.

// Cost prices one part of a layer's work on one card for one model.
type Cost interface {
	// Seconds returns the part's time and reports whether the work is beyond what was measured.
	Seconds(w *sim.Work) (s float64, beyond bool)
}

// Costs are the parts of a layer, each without the others.
type Costs struct {
	GEMM, Elementwise, PrefillAttention, DenseDecode, SparseDecode, Scoring Cost
}

// Of returns the cost models for a model. K and V of prompts are in tensors.
func Of(p *hw.Profile, m *llm.Model) Costs {
	gemm, elementwise, prefill := newGEMM(p, m), newElementwise(p, m),
		newPrefillAttention(p, m, 0)
	dense, sparse, scoring := newDense(p, m), newSparse(p, m), newScoring(p, m)
	return Costs{&gemm, &elementwise, &prefill, &dense, &sparse, &scoring}
}

// Seconds returns the seconds of one part for the given work.
func Seconds(c Cost, w sim.Work) float64 {
	s, _ := c.Seconds(&w)
	return s
}

// LoadSeconds returns the seconds in which an engine loads blocks from a host pool of poolBytes.
func LoadSeconds(p *hw.Profile, engine string, blocks, blockBytes, poolBytes int64) (
	float64, error) {
	l, err := newLoader(p, engine)
	return l.secondsOver(poolBytes, blocks, blockBytes), err
}

// SaveSeconds returns the seconds in which an engine saves blocks to a host pool of poolBytes.
// threads is for FlashD2H; 0: the profile's own.
func SaveSeconds(p *hw.Profile, engine string, blocks, blockBytes, poolBytes int64, threads int) (
	float64, error) {
	s, err := newSaver(p, engine, threads)
	return s.secondsOver(poolBytes, blocks, blockBytes), err
}

func (t *transfer) secondsOver(poolBytes, blocks, blockBytes int64) float64 {
	t.over(poolBytes)
	return t.seconds(blocks, blockBytes)
}

// PrefillFLOPs returns the FLOPs of one layer's attention of a chunk.
func PrefillFLOPs(m *llm.Model, span sim.Span) float64 {
	a := prefillAttention{flops: 4 * float64(m.HeadDim*m.QHeads)}
	return a.spanFLOPs(span)
}

// PrefillRate returns the FLOP/s of dense prefill attention of a chunk, without launch.
func PrefillRate(p *hw.Profile, m *llm.Model, span sim.Span) float64 {
	a := newPrefillAttention(p, m, 0)
	rate, _ := a.rate.power(math.Max(float64(span.Query), a.shortest()))
	return rate
}

// PrefillSeconds returns the seconds of one layer's attention to a chunk, with each query head's
// pattern, and of the indices. Without groups attention is dense. K and V before the chunk are in
// KV blocks of blockTokens tokens; 0: in tensors.
func PrefillSeconds(p *hw.Profile, m *llm.Model, groups []pattern.Group, span sim.Span,
	blockTokens int) (attention, index float64) {
	dense := newPrefillAttention(p, m, blockTokens)
	if len(groups) == 0 || groups[0].Kind == pattern.Dense {
		attention, _ = dense.of([]sim.Span{span})
		return attention, 0
	}
	s := newSparsePrefill(p, m, dense)
	return s.of(groups, []sim.Span{span})
}

// DecodeIteration returns the time of one dense decode step of batch requests at the given context,
// with all KV in HBM. Service levels are multiples of it (SparseServe §4.2: 25 times).
func DecodeIteration(p *hw.Profile, m *llm.Model, context, batch int) (des.Time, error) {
	if context < 1 || batch < 1 {
		return 0, fmt.Errorf("decode iteration: want a context and a batch of at least 1, got %d and %d",
			context, batch)
	}
	d, err := NewDevice(p, m, DeviceOptions{})
	if err != nil {
		return 0, err
	}
	w := sim.Work{Tokens: batch, Decodes: batch, DecodeTokens: int64(context) * int64(batch),
		BoundedTokens: int64(min(context, m.BoundTokens())) * int64(batch)}
	if err := d.Begin(&sim.Step{Requests: batch, Sampled: batch}); err != nil {
		return 0, err
	}
	for layer := range m.Layers {
		if err := d.Compute(layer, &w); err != nil {
			return 0, err
		}
	}
	t, err := d.Finish()
	return t.Elapsed, err
}

// The reference condition of service levels. PSA and SparseServe define them by a decode iteration
// without its context. With one request at SparseServe's longest LWM-7B prompt, an A100's figures
// yield both of PSA's levels, 30 ms and 20 ms.
const (
	referenceContext = 32768 // tokens
	referenceBatch   = 1     // requests
)

// ReferenceIteration returns DecodeIteration at the reference condition.
func ReferenceIteration(p *hw.Profile, m *llm.Model) (des.Time, error) {
	return DecodeIteration(p, m, referenceContext, referenceBatch)
}
