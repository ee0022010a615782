//go:build gpu

package latent_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

// onGPU runs a test on the library's thread. A machine without library or GPU fails it.
func onGPU(t *testing.T, f func(m cuda.Machine)) {
	t.Helper()
	library, err := cuda.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	err = library.Do(func(s *cuda.Session) error {
		if err := s.Init(0); err != nil {
			return err
		}
		f(s)
		return s.DeviceSync()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGPULogitsMatchTheReference(t *testing.T) {
	for name, c := range scenarios {
		t.Run(name, func(t *testing.T) {
			onGPU(t, func(m cuda.Machine) {
				c.preempts = false // steps are short against the gaps between requests
				c.check(t, c.serve(t, m))
			})
		})
	}
}

// Batches differ from run to run on a GPU, and sums with them: greedy tokens may part where two
// come close, so that logits are held against the reference above, and only misses here.
func TestGPUMissesAreThoseOfLRU(t *testing.T) {
	onGPU(t, func(m cuda.Machine) { missesAreLRU(t, m) })
}
