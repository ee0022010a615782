package live_test

import (
	"strings"
	"testing"

	"sparseserve/cuda"
	"sparseserve/cuda/live"
	"sparseserve/cuda/soft"
)

// deaf is a machine whose tables keep what the cache evicts.
type deaf struct {
	live.Machine
	kept int32
}

func (m *deaf) Lookup(a *cuda.LookupArgs, s cuda.Stream) error {
	b := *a
	m.kept += b.Evictions
	b.Evicted, b.Evictions = 0, 0
	return m.Machine.Lookup(&b, s)
}

// A run whose GPU finds other misses than the cache ends with an error that says in which layer.
func TestWrongLookupEndsTheRun(t *testing.T) {
	for _, name := range []string{"mha/gpu lookup: offload, small", "gqa/gpu lookup: offload, fifo"} {
		m := &deaf{Machine: soft.New(soft.Config{})}
		_, device, err := cases()[name].alone(t.Context(), m, &counted{})
		if m.kept == 0 {
			t.Fatalf("%s: nothing is evicted", name)
		}
		if err == nil || !strings.Contains(err.Error(), "layer ") || !strings.Contains(err.Error(), "the GPU's lookup misses") {
			t.Errorf("%s: error is %v, want one of the lookup", name, err)
		}
		if err := device.Close(); err != nil {
			t.Error(err)
		}
	}
}
