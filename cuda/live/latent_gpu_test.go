//go:build gpu

package live_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

func TestGPULatentLogitsMatchTheReference(t *testing.T) {
	for name, c := range latentCases {
		t.Run(name, func(t *testing.T) {
			onGPU(t, func(m *cuda.Session) {
				c.preempts = false // steps are short against the gaps between requests
				c.check(t, c.serve(t, m))
			})
		})
	}
}

// Batches differ from run to run on a GPU, and sums with them: greedy tokens may part where two
// come close, so that logits are held against the reference above, and only misses here.
func TestGPUMissesAreThoseOfLRU(t *testing.T) {
	onGPU(t, func(m *cuda.Session) { missesAreLRU(t, m) })
}
