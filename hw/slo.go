package hw

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// DecodeIteration returns the time of one dense decode step of batch requests at the given context,
// with all KV in HBM. Service levels are multiples of it (SparseServe §4.2: 25 times).
func DecodeIteration(p *Profile, m *Model, context, batch int) (des.Time, error) {
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
func ReferenceIteration(p *Profile, m *Model) (des.Time, error) {
	return DecodeIteration(p, m, referenceContext, referenceBatch)
}
